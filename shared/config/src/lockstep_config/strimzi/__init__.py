"""Strimzi's resources `KafkaMirrorMaker2` and `KafkaMirrorMaker` as the lines of an mm2.properties file.

`resource` is the way in. `schema` declares every field that Strimzi's CRDs have, in each API version, and `fields`
judges a resource by it. `mirror_maker_2` and `mirror_maker` say what each field becomes.
"""

"""`make demo`: two real Kafka clusters, orders in both, Lockstep between them, and the proof that what arrived is
what was sent.

`scene.py` says what is on the stage, `actors.py` write and read, `watch.py` sees how far the mirroring is, `screen.py`
shows it, `verdict.py` judges, `play.py` is the course of events.
"""

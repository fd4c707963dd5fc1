"""The reader of `mm2.properties`: one typed, frozen model, of which each service gets the section that it needs.

    configuration = load(Path("mm2.properties"), os.environ)
    settings = configuration.flow(Flow.parse("A->B"))

`lockstep_config.flow.client_settings` turns a flow's client properties into settings for confluent-kafka and our own
connections.
"""

from lockstep_config.flow.model import Cluster, Configuration, FlowSettings
from lockstep_config.loader.configuration import load
from lockstep_config.text.config_errors import ConfigurationError, Problem, UnknownFlow

__all__ = ["Cluster", "Configuration", "ConfigurationError", "FlowSettings", "Problem", "UnknownFlow", "load"]

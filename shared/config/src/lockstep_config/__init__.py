"""mm2.properties read into one typed, frozen model: `load` it, give each service the section it needs.

    configuration = load(Path("mm2.properties"), os.environ)
    settings = configuration.flow(Flow.parse("A->B"))

`lockstep_config.flow.client_settings` turns a flow's client properties into settings for confluent-kafka and our own
connections.
"""

from lockstep_config.flow.model import Cluster, Configuration, FlowSettings
from lockstep_config.loader.configuration import load
from lockstep_config.text.config_errors import ConfigurationError, Problem, UnknownFlow

__all__ = ["Cluster", "Configuration", "ConfigurationError", "FlowSettings", "Problem", "UnknownFlow", "load"]

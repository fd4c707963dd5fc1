"""mm2.properties read into one typed, frozen model: `load` it, give each service the section it needs.

    configuration = load(Path("mm2.properties"), os.environ)
    settings = configuration.flow(Flow.parse("A->B"))

`lockstep_config.clients` turns a flow's client properties into settings for confluent-kafka and aiokafka.
"""

from lockstep_config.load import load
from lockstep_config.model import Cluster, Configuration, FlowSettings
from lockstep_config.problems import ConfigurationError, Problem, UnknownFlow

__all__ = ["Cluster", "Configuration", "ConfigurationError", "FlowSettings", "Problem", "UnknownFlow", "load"]

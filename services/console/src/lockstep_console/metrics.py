"""The console's own metrics. Those of the flows are the services'."""

from lockstep_state.metric import MetricSet

METRICS = MetricSet()

STREAMS = METRICS.gauge(
    "lockstep_console_streams", ("flow",), "Pages in a browser that get changes of the flow as they come"
)

REPORT_SECONDS = METRICS.gauge(
    "lockstep_console_report_seconds", ("flow",), "Seconds for which both clusters were asked for the last report"
)

"""The state topic folded into rows, who may write them, and the desired state of a flow's parts."""

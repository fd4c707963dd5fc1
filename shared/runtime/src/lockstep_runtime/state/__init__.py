"""The state topic folded into rows, who may write them, and what is wanted of a flow's parts."""

"""The layers: members, build, call, nodes, scopes, wrong arguments."""

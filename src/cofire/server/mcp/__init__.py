"""Cofire over the Model Context Protocol: tools, resources and a prompt, over stdio and HTTP.

`protocol.build_server` makes the server of the official SDK from tables of tools (`tools`); every
tool goes through `Service.run`. `stdio` and `http` carry it. Nothing is imported here, because
`stdio` has to take standard output out of everybody's reach first.
"""

"""FDL, the felt device link: `frame` is the protocol, each other module the events and commands of one device."""

"""From a URL to a link: serial ports, TCP, USB, SAS, MQTT.

Called by: the supervisor of the edge, and commands that open a link to a device.
May import: broker for MQTT, config.model, protocols; nothing else of the edge.
"""

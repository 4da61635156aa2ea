"""From a URL to a link: serial ports, TCP, USB, SAS, MQTT."""

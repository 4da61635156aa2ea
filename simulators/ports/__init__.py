"""How simulated devices are reached: terminals, sockets, USB, MQTT."""

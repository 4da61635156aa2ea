// The usual bridge from a serial port to MQTT in Node.js: node node_bridge.js TTY PORT TOPIC. It stores no events.
const { SerialPort, ReadlineParser } = require('serialport');
const [path, port, topic] = process.argv.slice(2);
const client = require('mqtt').connect('mqtt://127.0.0.1:' + port);
client.on('connect', () => {
  const lines = new SerialPort({ path, baudRate: 9600 }).pipe(new ReadlineParser({ delimiter: '\n' }));
  lines.on('data', (line) => client.publish(topic, line, { qos: 1 }));
});

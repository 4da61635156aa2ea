// Print each round of a site as one line of JSON: in order, without gaps, after a restart from where it stopped.
//
// Needs MQTT.js (npm install mqtt, or Debian's node-mqtt).
// Usage: node follow_results.js SITE [HOST [PORT [USER PASSWORD]]]
const fs = require("fs");
const mqtt = require("mqtt");

const ENDS = ["resolved", "voided", "corrected"];
const OFFSETS = "offsets.json"; // by journal and table the seq that is expected next
const AGAIN_MS = 2000;
const MOST_WAITING = 1000;

const [site, host = "127.0.0.1", port = "1883", username, password] = process.argv.slice(2);
const expected = fs.existsSync(OFFSETS) ? JSON.parse(fs.readFileSync(OFFSETS, "utf8")) : {};
const waiting = {}; // what came too early, by seq
const client = mqtt.connect({ host, port: Number(port), username, password });

function ask(key) {
  const table = key.split("/")[1];
  client.publish(`felt/1/${site}/table/${table}/round/cmd/replay`, JSON.stringify({ from: expected[key] }), { qos: 1 });
}

function tell(table, event) {
  if (!ENDS.includes(event.type)) return;
  const result = event.data.result;
  const outcome = result.void ? "void" : result.announcements.en || "";
  console.log(JSON.stringify({ table, round: result.round, type: event.type, outcome }));
}

// The new file takes the old one's place when it is whole and on the disk, so the file outlives a kill or a power cut.
function keepOffsets() {
  const file = fs.openSync(`${OFFSETS}.new`, "w");
  fs.writeSync(file, JSON.stringify(expected));
  fs.fsyncSync(file);
  fs.closeSync(file);
  fs.renameSync(`${OFFSETS}.new`, OFFSETS);
}

client.on("connect", () => {
  client.subscribe(`felt/1/${site}/table/+/round/event/+`, { qos: 1 }, () => Object.keys(expected).forEach(ask));
});

// MQTT.js connects again by itself. Of a refused user it must not try for ever: codes 4 and 5 of MQTT 3.1.1.
client.on("error", (error) => {
  if (error.code === 4 || error.code === 5) {
    console.error(`the broker refuses this program: ${error.message}; check user and password`);
    process.exit(1);
  }
});

client.on("close", () => console.error("no connection to the broker; trying again"));

client.on("message", (topic, payload) => {
  const event = JSON.parse(payload);
  const table = topic.split("/")[4];
  const key = `${event.journal}/${table}`;
  const early = (waiting[key] ??= new Map());
  expected[key] ??= event.seq;
  if (event.seq < expected[key]) return; // delivered twice
  if (event.seq === expected[key] || early.size < MOST_WAITING) early.set(event.seq, event); // more is asked for again
  if (!early.has(expected[key])) ask(key);
  while (early.has(expected[key])) {
    tell(table, early.get(expected[key]));
    early.delete(expected[key]++);
  }
  keepOffsets();
});

setInterval(() => Object.keys(waiting).filter((key) => waiting[key].size).forEach(ask), AGAIN_MS);

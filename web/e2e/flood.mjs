// A server in front of a sandbox that passes every request on, except the stream of books, which it serves itself:
// so fast as no sandbox on this machine could.

import { createHash } from "node:crypto";
import { createServer, request } from "node:http";

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const TICK_MS = 10;
const LEVELS = 40;

/** Return a text as an unmasked frame of a WebSocket. */
function frame(text) {
  const body = Buffer.from(text);
  const head = body.length < 126 ? Buffer.from([0x81, body.length]) : Buffer.from([0x81, 126, body.length >> 8, body.length & 255]);
  return Buffer.concat([head, body]);
}

/** Return the payload of the first masked text frame in the bytes, null while it is not whole. */
function read(bytes) {
  if (bytes.length < 2) return null;
  const short = bytes[1] & 127;
  const at = short < 126 ? 2 : 4;
  const length = short < 126 ? short : bytes.readUInt16BE(2);
  if (short === 127 || bytes.length < at + 4 + length) return null;
  const mask = bytes.subarray(at, at + 4);
  return Buffer.from(bytes.subarray(at + 4, at + 4 + length)).map((byte, index) => byte ^ mask[index % 4]).toString();
}

function book(token, sequence) {
  const levels = (from, step) => Array.from({ length: LEVELS }, (_, index) => ({ price: ((from + step * index) / 100).toFixed(2), size: "100" }));
  return { event_type: "book", asset_id: token, bids: levels(49, -1), asks: levels(51, 1), tick_size: "0.01", min_order_size: "5", last_trade_price: "0.5", sequence };
}

/** Serve a sandbox with `rate` changes of the book a second; return its URL and how to end it. */
export async function serveFlood(origin, rate) {
  const target = new URL(origin);
  const sockets = new Set();
  let sent = 0;
  const server = createServer((asked, answer) => {
    const { hostname, port } = target;
    const onward = request({ hostname, port, path: asked.url, method: asked.method, headers: { ...asked.headers, host: target.host } }, (found) => {
      answer.writeHead(found.statusCode, found.headers);
      found.pipe(answer);
    });
    onward.on("error", () => answer.destroy());
    asked.pipe(onward);
  });
  server.on("upgrade", (asked, socket) => {
    const accept = createHash("sha1").update(asked.headers["sec-websocket-key"] + GUID).digest("base64");
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`);
    sockets.add(socket);
    let timer = null;
    const stop = () => { clearInterval(timer); sockets.delete(socket); };
    socket.on("close", stop).on("error", stop);
    socket.on("data", (bytes) => {
      const text = read(bytes);
      if (timer !== null || text === null || !text.startsWith("{")) return;
      const [token, other] = JSON.parse(text).assets_ids;
      let sequence = 2;
      socket.write(frame(JSON.stringify([book(token, 1), book(other, 2)])));
      const begin = performance.now();
      let written = 0;
      timer = setInterval(() => {
        const due = Math.floor(((performance.now() - begin) * rate) / 1000); // a late timer sends what it missed
        const changes = [];
        for (; written < due; written += 1) {
          sequence += 1;
          const [price, size] = [(10 + (sequence % 39)) / 100, (sequence % 997) + 1];
          const change = { asset_id: token, side: "BUY", price: price.toFixed(2), size: String(size) };
          changes.push(frame(JSON.stringify({ event_type: "price_change", sequence, price_changes: [change] })));
        }
        sent += changes.length;
        socket.write(Buffer.concat(changes));
      }, TICK_MS);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    sent: () => sent,
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      server.closeAllConnections();
    },
  };
}

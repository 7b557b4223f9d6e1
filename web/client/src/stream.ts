// One WebSocket of the trading API that stays open: it checks the sequence of messages, notices silence, and
// connects again. A new connection asks for the messages that were missed; where the server does not have them, or
// one is lacking, the stream begins anew with whole books, because books are only right without gaps.

const OPEN = 1; // WebSocket.OPEN, of whatever makes the sockets
const PING_MS = 10_000;
const SILENCE_MS = 25_000;
const BACKOFF_MS = [300, 1000, 2000, 5000, 10_000];

export type StreamState = "connecting" | "live" | "lost";

export interface StreamEvents {
  /** Returns the first message after each connection. */
  hello: () => Record<string, unknown>;
  onMessage: (message: Record<string, unknown>) => void;
  onState: (state: StreamState) => void;
}

/** What makes a WebSocket: the one of browsers and of Node.js 22, or another with the same methods. */
export type SocketConstructor = new (url: string) => WebSocket;

export class Stream {
  private socket: WebSocket | null = null;
  private streamId: string | null = null;
  private sequence = 0;
  private attempts = 0;
  private lastReadAt = 0;
  private timers: ReturnType<typeof setTimeout>[] = [];
  private isClosed = false;

  constructor(
    private readonly url: string,
    private readonly events: StreamEvents,
    private readonly socketClass?: SocketConstructor,
  ) {
    this.connect();
  }

  send(message: unknown): void {
    if (this.socket?.readyState === OPEN) this.socket.send(JSON.stringify(message));
  }

  close(): void {
    this.isClosed = true;
    this.drop();
  }

  private connect(): void {
    this.events.onState(this.attempts === 0 ? "connecting" : "lost");
    const socket = new (this.socketClass ?? WebSocket)(this.url);
    this.socket = socket;
    if (this.streamId === null) this.forget();
    socket.onopen = () => {
      this.lastReadAt = Date.now();
      const place = this.streamId === null ? {} : { stream_id: this.streamId, sequence: this.sequence };
      socket.send(JSON.stringify({ ...this.events.hello(), ...place }));
      this.watch(socket);
    };
    socket.onmessage = (event) => this.read(String(event.data));
    socket.onclose = () => {
      if (this.socket === socket) this.reconnect();
    };
  }

  private read(text: string): void {
    this.lastReadAt = Date.now();
    if (text === "PONG") {
      this.settled();
      return;
    }
    const parsed = JSON.parse(text) as Record<string, unknown> | Record<string, unknown>[];
    for (const message of Array.isArray(parsed) ? parsed : [parsed]) {
      if (message["event_type"] === "not_resumed") this.forget();
      if (typeof message["sequence"] !== "number") continue;
      this.sequence += 1;
      if (message["sequence"] !== this.sequence) {
        this.forget();
        this.socket?.close();
        return;
      }
      if (typeof message["stream_id"] === "string") this.streamId = message["stream_id"];
      this.events.onMessage(message);
    }
    this.settled();
  }

  private forget(): void {
    this.streamId = null;
    this.sequence = 0;
  }

  private settled(): void {
    this.attempts = 0;
    this.events.onState("live");
  }

  private watch(socket: WebSocket): void {
    socket.send("PING");
    const timer = setInterval(() => {
      if (Date.now() - this.lastReadAt > SILENCE_MS) socket.close();
      else if (socket.readyState === OPEN) socket.send("PING");
    }, PING_MS);
    this.timers.push(timer);
  }

  private reconnect(): void {
    this.drop();
    if (this.isClosed) return;
    this.events.onState("lost");
    const wait = BACKOFF_MS[Math.min(this.attempts, BACKOFF_MS.length - 1)] ?? 1000;
    this.attempts += 1;
    this.timers.push(setTimeout(() => this.connect(), wait));
  }

  private drop(): void {
    const socket = this.socket;
    this.socket = null;
    for (const timer of this.timers.splice(0)) clearTimeout(timer);
    socket?.close();
  }
}

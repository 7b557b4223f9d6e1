// The private stream of the session: what it says is read again, and fills are announced.

import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import { streamUrl } from "../lib/config";
import { useConfig, useNotify } from "../lib/context";
import { Stream } from "../lib/stream";
import { t } from "../strings";
import { credentialsOf } from "./credentials";
import { useSession } from "./session";

const GATHER_MS = 200;

export function useUserStream(): void {
  const config = useConfig();
  const notify = useNotify();
  const client = useQueryClient();
  const { session } = useSession();
  const address = session?.address;
  useEffect(() => {
    if (session === null) return;
    let stream: Stream | null = null;
    let isGone = false;
    let timer: ReturnType<typeof setTimeout> | null = null;
    const onMessage = (message: Record<string, unknown>): void => {
      if (message["event_type"] === "trade" && message["status"] === "FAILED") notify("bad", t.orders.failed(String(message["err_msg"] ?? "")));
      timer ??= setTimeout(() => {
        timer = null;
        void client.invalidateQueries({ queryKey: ["own"] });
        void client.invalidateQueries({ queryKey: ["portfolio"] });
      }, GATHER_MS);
    };
    void credentialsOf(config, session).then(
      (auth) => {
        if (isGone) return;
        const hello = (): Record<string, unknown> => ({ type: "user", markets: [], auth });
        stream = new Stream(streamUrl(config, "user"), { hello, onMessage, onState: () => undefined });
      },
      () => undefined,
    );
    return () => {
      isGone = true;
      if (timer !== null) clearTimeout(timer);
      stream?.close();
    };
  }, [config, address]);
}

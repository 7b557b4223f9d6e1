// Sign and place an order: what is being done, what went wrong, and what to do about it.

import { useState } from "react";

import type { Market } from "../api/discovery";
import { useConfig, useNotify } from "../lib/context";
import { Refusal, patiently } from "../lib/http";
import { t } from "../strings";
import { type Placement, type SignedOrder, type Wanted, placeOrder, signOrder, validateOrder } from "../wallet/orders";
import type { Session } from "../wallet/session";

interface Placing {
  isBusy: boolean;
  doing: string;
  error: unknown;
  place: (wanted: Wanted) => Promise<Placement | null>;
}

export function usePlacing(session: Session, market: Market, feeRateBps: number): Placing {
  const config = useConfig();
  const notify = useNotify();
  const [doing, setDoing] = useState("");
  const [error, setError] = useState<unknown>(null);

  /** Return the refusal with the server's cure, which it gives when it checks the same order without placing it. */
  const explained = async (refusal: unknown, body: SignedOrder | null): Promise<unknown> => {
    if (!(refusal instanceof Refusal) || body === null || refusal.status !== 400) return refusal;
    try {
      const verdict = await validateOrder(config, session, body);
      if (verdict.cure === null) return refusal;
      return new Refusal(refusal.status, refusal.code, refusal.message, refusal.details, refusal.retryAfterS, verdict.cure);
    } catch {
      return refusal;
    }
  };

  const place = async (wanted: Wanted): Promise<Placement | null> => {
    let body: SignedOrder | null = null;
    setError(null);
    try {
      setDoing(t.ticket.signing);
      const order = await signOrder(config, session, market, wanted, feeRateBps);
      body = order;
      setDoing(t.ticket.placing);
      return await patiently(
        () => placeOrder(config, session, order),
        (refusal, seconds) => notify("wait", t.problem.waits(refusal.message, seconds)),
      );
    } catch (failure) {
      setError(await explained(failure, body));
      return null;
    } finally {
      setDoing("");
    }
  };
  return { isBusy: doing !== "", doing, error, place };
}

// The frame of every page: navigation, the wallet, notices, and which page a path means.

import { type ReactNode, Suspense, lazy, useCallback, useEffect, useRef, useState } from "react";

import { useConfig, type Notice, type NoticeKind, NotifyContext } from "./lib/context";
import { usePath } from "./lib/router";
import { toggleTheme, useTheme } from "./lib/theme";
import { EventPage } from "./pages/event";
import { MarketsPage } from "./pages/markets";
import { t } from "./strings";
import { Boundary } from "./ui/boundary";
import { Empty, Link, Skeleton } from "./ui/parts";
import { WalletButton } from "./ui/wallet_button";
import { SessionProvider } from "./wallet/session";
import { useUserStream } from "./wallet/user_stream";

const PortfolioPage = lazy(() => import("./pages/portfolio").then((each) => ({ default: each.PortfolioPage })));
const LeaderboardPage = lazy(() => import("./pages/leaderboard").then((each) => ({ default: each.LeaderboardPage })));

const CreatePage = lazy(() => import("./pages/create").then((each) => ({ default: each.CreatePage })));
const ResolvePage = lazy(() => import("./pages/resolve").then((each) => ({ default: each.ResolvePage })));
const OperatorPage = lazy(() => import("./pages/operator").then((each) => ({ default: each.OperatorPage })));

const NOTICE_MS = 7_000;
const NOTICES_MAX = 4;

export function App() {
  const path = usePath().split("?")[0] ?? "/";
  const [notices, setNotices] = useState<Notice[]>([]);
  const serial = useRef(0);
  const notify = useCallback((kind: NoticeKind, text: string) => {
    serial.current += 1;
    const id = serial.current;
    setNotices((before) => [...before.filter((each) => each.text !== text), { id, kind, text }].slice(-NOTICES_MAX));
    setTimeout(() => setNotices((before) => before.filter((each) => each.id !== id)), NOTICE_MS);
  }, []);
  return (
    <NotifyContext.Provider value={notify}>
      <SessionProvider>
        <a className="skip" href="#main">{t.skip}</a>
        <Head />
        <main id="main" tabIndex={-1}><Suspense fallback={<div className="page"><Skeleton height="6rem" count={3} /></div>}><Boundary of={path}><Page /></Boundary></Suspense></main>
        <Foot />
      </SessionProvider>
      <div className="notices" role="status" aria-live="polite">
        {notices.map((notice) => <p key={notice.id} className={`notice ${notice.kind}`}>{notice.text}</p>)}
      </div>
    </NotifyContext.Provider>
  );
}

function Page(): ReactNode {
  const path = usePath().split("?")[0] ?? "/";
  const [, first, second] = path.split("/");
  useUserStream();
  useEffect(() => {
    document.title = "Foretell";
  }, [path]);
  if (first === "") return <MarketsPage />;
  if (first === "event" && second) return <EventPage key={second} slug={decodeURIComponent(second)} />;
  if (first === "portfolio") return <PortfolioPage key={second ?? ""} address={second ?? null} />;
  if (first === "leaderboard") return <LeaderboardPage />;
  if (first === "create") return <CreatePage />;
  if (first === "resolve") return <ResolvePage />;
  if (first === "operator") return <OperatorPage />;
  return <div className="page narrow"><Empty title={t.notFound}><Link to="/" className="link">{t.backToMarkets}</Link></Empty></div>;
}

function Head() {
  const path = usePath();
  const items = [
    { to: "/", label: t.nav.markets },
    { to: "/portfolio", label: t.nav.portfolio },
    { to: "/leaderboard", label: t.nav.leaderboard },
    { to: "/create", label: t.nav.create },
    { to: "/resolve", label: t.nav.resolve },
  ];
  const isCurrent = (to: string): boolean => (to === "/" ? path === "/" || path.startsWith("/?") || path.startsWith("/event") : path.startsWith(to));
  return (
    <header className="head">
      <div className="head-row">
        <Link to="/" className="brand"><img src="/favicon.svg" alt="" width="28" height="28" />{t.brand}</Link>
        <nav className="nav" aria-label={t.nav.label}>
          {items.map((item) => <Link key={item.to} to={item.to} aria-current={isCurrent(item.to) ? "page" : undefined}>{item.label}</Link>)}
        </nav>
        <WalletButton />
      </div>
    </header>
  );
}

function Foot() {
  const config = useConfig();
  const theme = useTheme();
  return (
    <footer className="foot">
      <div>
        <span>{t.foot.version(config.version, config.chainId)}{config.isSandbox ? ` · ${t.foot.sandbox}` : ""}</span>
        <span className="row">
          <Link to="/operator" className="link">{t.foot.operator}</Link>
          <a className="link" href={`${config.apis.trading}/docs`}>{t.foot.apis}</a>
          <a className="link" href="https://www.tradingview.com/" rel="noopener noreferrer" target="_blank">{t.foot.charts}</a>
          <button type="button" className="button quiet slim" onClick={toggleTheme}>{theme === "dark" ? t.foot.light : t.foot.dark}</button>
        </span>
      </div>
    </footer>
  );
}

// A game: its teams, its start, and the prices of its winner.

import { type Event, type Game, type Market, type Team, gameOf, winnerMarkets } from "../api/discovery";
import { moment, percent } from "../lib/format";
import { t } from "../strings";
import { Icon } from "../ui/parts";

/** Return whether a game is to come, under way or over; "under way" is said by its start and its open markets. */
export function stateOf(event: Event, game: Game): string {
  if (event.closed) return t.game.over;
  if (game.startMs === null) return t.game.versus;
  return game.startMs > Date.now() ? moment(game.startMs / 1000) : t.game.underWay;
}

/** Return the price of one side's market for the winner. */
function priceOf(markets: Market[], side: "home" | "draw" | "away"): string | null {
  const market = markets.find((each) => each.slug.endsWith(`-${side}`));
  return market === undefined ? null : percent(market.prices[0]);
}

export function GameBoard({ event }: { event: Event }) {
  const game = gameOf(event);
  if (game === null) return null;
  const markets = winnerMarkets(event);
  const draw = priceOf(markets, "draw");
  return (
    <div className="card teams" role="group" aria-label={t.game.label}>
      <Side team={game.home} price={priceOf(markets, "home")} />
      <div className="stack tight">
        <span className="muted small">{game.league}</span>
        <span className="strong">{stateOf(event, game)}</span>
        {draw === null ? null : <span className="muted small">{t.game.draw(draw)}</span>}
        {game.livestreamUrl === null ? null : <a className="link small" href={game.livestreamUrl} target="_blank" rel="noopener noreferrer nofollow">{t.game.watch}</a>}
      </div>
      <Side team={game.away} price={priceOf(markets, "away")} />
    </div>
  );
}

function Side({ team, price }: { team: Team; price: string | null }) {
  return (
    <div className="team">
      <Icon url={team.logo ?? ""} title={team.name} />
      <span>{team.name}</span>
      {price === null ? null : <span className="figure lesser">{price}</span>}
    </div>
  );
}

/** A game on its card in a list: a line for each team, and the price of a draw. */
export function GameLines({ event, game }: { event: Event; game: Game }) {
  const markets = winnerMarkets(event);
  const draw = priceOf(markets, "draw");
  return (
    <ul className="stack tight grow">
      {(["home", "away"] as const).map((side) => (
        <li key={side} className="row">
          <Icon url={game[side].logo ?? ""} title={game[side].name} size="mini" />
          <span className="clip grow">{game[side].name}</span>
          <span className="strong">{priceOf(markets, side) ?? ""}</span>
        </li>
      ))}
      <li className="row spread muted small"><span>{[game.league, stateOf(event, game)].filter((each) => each !== "").join(" · ")}</span><span>{draw === null ? "" : t.game.draw(draw)}</span></li>
    </ul>
  );
}

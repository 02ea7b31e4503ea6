import type { Runtime } from '../../core/runtime.ts';
import { LANES_KEYS } from './LanesCall.ts';
import type { LanesCall, LanesReply, LanesRules } from './LanesCall.ts';
import { Script } from './Script.ts';
import { SharedTurns } from './SharedTurns.ts';
import type { StoreLink } from './StoreLink.ts';

/** Who decides for lanes. Undefined: the store is lost. */
export type LanesWay = (call: LanesCall) => Promise<LanesReply | undefined>;

const SCRIPT = Script.read('lanes.lua');

/** The server, for all processes. */
export function serverLanes(link: StoreLink, name: string, rules: LanesRules): LanesWay {
  // One hash tag: all lanes of a name are on one node of a cluster.
  const keys = LANES_KEYS.map((part) => `${name}:${part}`);
  const text = JSON.stringify(rules);
  return async (call) => {
    const reply = await link.run(SCRIPT, keys, [text, JSON.stringify(call)]);
    return reply === undefined ? undefined : (numbers(reply) as LanesReply);
  };
}

/** This process, for itself. By the wall clock, so that a turn keeps its place in line when the server decides again. */
export function ownLanes(rules: LanesRules, runtime: Runtime): LanesWay {
  const nowUs = (): number => Math.floor(runtime.clock.wallNow() * 1000);
  const turns = new SharedTurns({ ...rules, leaseUs: Infinity }, nowUs(), 0);
  return (call) => Promise.resolve(turns.call(nowUs(), { ...call, known: 0 }));
}

/** Clients may be told to hand out numbers as text. */
function numbers(reply: unknown): unknown {
  return Array.isArray(reply) ? reply.map(numbers) : Number(reply);
}

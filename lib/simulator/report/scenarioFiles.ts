import { createHash } from 'node:crypto';
import { policyText } from '../../policy/policyText.ts';
import type { PolicyPath } from '../../policy/PolicyProblem.ts';
import { isSecret } from '../../policy/shown.ts';
import type { Scenario } from '../scenario/Scenario.ts';
import type { ScenarioFile } from '../scenario/loadScenario.ts';
import { count } from './page/format.js';

/** What a report shows of a file: its text, or of a long one how to know it again. */
export interface ShownFile {
  readonly name: string;
  readonly text: string | undefined;
  readonly note: string;
}

const LONGEST_SHOWN = 200_000;
const HIDDEN = '[hidden]';
/** A shorter text may stand in other places too. */
const SHORTEST_SECRET = 8;

/** The files as a report shows them. What a policy has in places of keys and addresses is hidden. */
export function scenarioFiles(scenario: Scenario, files: readonly ScenarioFile[] | undefined): readonly ShownFile[] {
  const given = files ?? [{ name: 'scenario.json', text: `${JSON.stringify(scenario, undefined, 2)}\n` }];
  return given.map(({ name, text }) => {
    const hash = createHash('sha256').update(text).digest('hex');
    const note = `${count(Buffer.byteLength(text))} bytes, SHA-256 ${hash}`;
    if (text.length > LONGEST_SHOWN) return { name, text: undefined, note: `${note}; too long to be shown here` };
    const secrets = secretsIn(name, text);
    const shown = secrets.reduce((rest, secret) => rest.replaceAll(secret, HIDDEN), text);
    return { name, text: shown, note: secrets.length > 0 ? `${note}; keys and addresses are hidden` : note };
  });
}

function secretsIn(name: string, text: string): string[] {
  if (!/\.(?:ya?ml|json)$/i.test(name)) return [];
  const found = new Set<string>();
  const look = (value: unknown, path: PolicyPath): void => {
    if (typeof value === 'string') {
      // A variable's name tells nothing.
      const kept = value.length < SHORTEST_SECRET || /^\$\{\w+\}$/.test(value);
      if (!kept && isSecret(path)) found.add(value);
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, member] of Object.entries(value)) look(member, [...path, key]);
    }
  };
  look(policyText(text, name.toLowerCase().endsWith('.json') ? 'json' : 'yaml').value, []);
  return [...found].sort((a, b) => b.length - a.length);
}

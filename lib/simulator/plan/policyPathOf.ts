import type { PolicyPath } from '../../policy/PolicyProblem.ts';
import { at } from '../../policy/schemaProblems.ts';
import type { Scenario } from '../scenario/Scenario.ts';

/** A path as it is written. In `models.gpt-5.5.retry.attempts` the name of the model has a dot of its own. */
export function policyPathOf(written: string | PolicyPath, scenario: Scenario): PolicyPath {
  if (typeof written !== 'string') return written;
  const path: (string | number)[] = [];
  let rest = written.replace(/\[(\d+)\]/g, '.$1');
  while (rest !== '') {
    const known = namesAt(path, scenario).filter((name) => rest === name || rest.startsWith(`${name}.`));
    const longest = known.reduce((best, name) => (name.length > best.length ? name : best), '');
    const step = longest === '' ? (/^[^.]*/.exec(rest)?.[0] ?? '') : longest;
    path.push(path.at(-1) === 'deployments' ? Number(step) : step);
    rest = rest.slice(step.length + 1);
  }
  return path;
}

/** Names that users have chosen. */
function namesAt(path: PolicyPath, { load, upstreams, policy = {} }: Scenario): readonly string[] {
  const here = at(policy, path);
  const written = typeof here === 'object' && here !== null ? Object.keys(here) : [];
  switch (path.join('.')) {
    case 'models':
      return [...written, 'default', ...load.map(({ model }) => model)];
    case 'tenants':
      return [...written, 'default', ...load.flatMap(({ tenant }) => tenant ?? [])];
    case 'quota.clients':
      return [...written, ...Object.keys(upstreams)];
    default:
      return written;
  }
}

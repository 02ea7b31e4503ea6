import { explore } from '../model/explore.ts';
import { MODEL_CHECKS } from '../model/models.ts';
import { writeResults } from './parts/writeResults.ts';

const rows = MODEL_CHECKS.map(({ machine, of, short, long, broken }) => {
  const small = explore(short);
  const large = explore(long);
  const found = broken.filter(([, make, what]) => what.test(explore(make).violation?.what ?? '')).length;
  for (const { violation } of [small, large]) if (violation) console.error(machine, violation);
  return { machine, of, small, large, broken: broken.length, found };
});

await writeResults({
  name: 'model-checks',
  title: 'Machines explored state by state',
  text: `
Each machine of \`lib/limits\` that callers share is driven through every order in which a handful of callers can do everything they may:
acquire, leave the line, end well or badly, while time passes between any two of these. In each state that this leads to, the
rules of the machine are checked: nothing above a limit or a quota, first come first served, nobody forgotten, everything given back
once. From each state the end must be in reach, and where two ways lead to one state, the machine must answer alike after both.

*Among the tests*: the size that \`npm test\` explores. *Here*: the larger size of this run. *States*: different ones. *Steps*:
transitions between them. *Deepest*: steps to the state furthest from the start. *Broken ones found*: machines that were made wrong
in one thing on purpose, and that the same rules find out.`,
  rows: [
    ['machine', 'among the tests', 'states', 'here', 'states', 'steps', 'deepest', 'broken ones found'],
    ...rows.map(({ machine, of, small, large, broken, found }) => [
      machine,
      of[0],
      small.states.toLocaleString('en'),
      of[1],
      large.states.toLocaleString('en'),
      large.steps.toLocaleString('en'),
      large.deepest,
      `${found} of ${broken}`,
    ]),
  ],
  claims: [
    ['no machine breaks a rule in any state', rows.every(({ small, large }) => !small.violation && !large.violation)],
    ['every machine that is broken on purpose is found out', rows.every(({ broken, found }) => broken === found)],
  ],
});

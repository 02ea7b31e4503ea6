import { isSluiceError } from '../core/errors.ts';
import { explain } from '../policy/explain.ts';
import { readPolicyFile } from '../policy/loadPolicy.ts';
import { invalidPolicy } from '../policy/parsePolicy.ts';
import type { PolicyReading } from '../policy/parsePolicy.ts';
import { policyJsonSchema } from '../policy/policyJsonSchema.ts';
import { policyWarnings } from '../policy/policyWarnings.ts';
import { redacted } from '../policy/redacted.ts';
import type { Command, Terminal } from './Command.ts';
import { parseFlags, wrongFlag } from './flags.ts';

const help = `Usage: sluice check <policy.yaml> [flags]
       sluice check --schema

Says what a policy does, or everything that is wrong with it. Ends with 1 if anything is.

  --client NAME   a client there is; may be repeated (those that the policy describes, or any)
  --strict        ends with 1 for warnings too
  --json          prints problems, or the policy with its defaults, and warnings, as JSON
  --schema        prints the JSON Schema of policies, for editors`;

const FLAGS = {
  client: { type: 'string', multiple: true },
  strict: { type: 'boolean' },
  json: { type: 'boolean' },
  schema: { type: 'boolean' },
} as const;

/** `sluice check`. */
export const check: Command = {
  help,
  run: (args, terminal) => Promise.resolve(run(args, terminal)),
};

function run(args: readonly string[], terminal: Terminal): number {
  const { values, positionals } = parseFlags(args, FLAGS, 1);
  const [path] = positionals;
  const inJson = (value: unknown): void => terminal.print(JSON.stringify(value, undefined, 2));
  if (values.schema === true) {
    if (path !== undefined) throw wrongFlag('--schema takes no file');
    inJson(policyJsonSchema());
    return 0;
  }
  if (path === undefined) throw wrongFlag('name the file of the policy');
  const { policy, problems } = readFile(path, values.client);
  if (policy === undefined) {
    if (values.json === true) inJson({ ok: false, problems, warnings: [] });
    else terminal.complain(invalidPolicy(path, problems).message);
    return 1;
  }
  const warnings = policyWarnings(policy);
  if (values.json === true) inJson({ ok: true, problems, warnings, policy: redacted(policy) });
  else terminal.print(explain(policy));
  return values.strict === true && warnings.length > 0 ? 1 : 0;
}

/** A file that cannot be read is the command line's fault. */
function readFile(path: string, clients: readonly string[] | undefined): PolicyReading {
  try {
    return readPolicyFile(path, { clients });
  } catch (error) {
    throw isSluiceError(error) ? wrongFlag(error.message) : error;
  }
}

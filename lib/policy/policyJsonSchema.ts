import { z } from 'zod';
import { policySchema } from './schema/policySchema.ts';

/**
 * The JSON Schema of a policy file, for editors: names, kinds, ranges and defaults, but not what settings must be
 * together. `null` stands for a bound that is off.
 *
 * @example
 * ```ts
 * import { policyJsonSchema } from 'sluice';
 *
 * console.log(policyJsonSchema()['title']); // => Sluice policy
 * ```
 */
export function policyJsonSchema(): Readonly<Record<string, unknown>> {
  const { $schema, ...schema } = z.toJSONSchema(policySchema, { io: 'input' });
  return { $schema, title: 'Sluice policy', ...schema };
}

import { z } from 'zod';
import { MID_STREAM_MODES } from '../../core/midStream.ts';
import type { GatewayInput, GatewayKeyInput } from '../PolicyInput.ts';
import * as is from './leaves.ts';
import { setting, strict } from './leaves.ts';

const hashError = 'the SHA-256 of a key, in 64 hexadecimal digits';
const hash = z.string({ error: hashError }).regex(/^[0-9a-fA-F]{64}$/, { error: hashError });

const key: z.ZodType<GatewayKeyInput> = strict({
  hash: hash.meta({ description: 'SHA-256 of what the client sends.' }),
  tenant: setting(is.text('the name of a tenant'), 'Whose calls these are. Default: the request names the tenant.'),
  priority: setting(is.text('the name of a priority'), 'Their priority. Default: the request names it.'),
});

const keyError = `${hashError}, or an object with hash, tenant, priority`;

export const gatewaySchema: z.ZodType<GatewayInput> = strict({
  keys: setting(is.listOf(z.union([hash, key], { error: keyError }), 'keys'), 'Keys that the gateway accepts.', []),
  midStream: setting(
    is.oneOf([...MID_STREAM_MODES, 'buffer']),
    'What callers get of a stream that breaks off. Default: what the model has.',
  ),
});

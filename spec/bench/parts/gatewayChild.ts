import { createSluice } from '../../../lib/client/createSluice.ts';
import { createGateway } from '../../../lib/http/gateway/createGateway.ts';
import { httpSource } from '../../../lib/http/transport/httpSource.ts';

// Started by gateways.ts with the base URL of the provider. Ends with whoever started it.

const source = httpSource({ baseURL: process.argv[2] as string, apiKey: 'none' });
// Every limit is there and does its part, and none of them is reached.
const sluice = createSluice(source, {
  maxInFlight: 100_000,
  quota: { account: { requestsPerMinute: 60_000_000, burstRequests: 1_000_000, tokensPerMinute: 1_000_000_000_000 } },
  models: { default: { concurrency: { limit: 100_000 } } },
});
const { url } = await createGateway(sluice).listen();
process.on('disconnect', () => process.exit());
process.send?.(url);

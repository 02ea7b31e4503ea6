import { expect } from 'chai';
import { builtDist } from '../helpers/builtDist.ts';
import { freePort } from '../helpers/freePort.ts';
import { otlpReceiver } from '../helpers/otlpReceiver.ts';
import { runExample } from '../helpers/runExample.ts';
import { outline, spanForest } from '../helpers/spanForest.ts';

describe('examples/tracing.ts', function () {
  this.timeout(60_000);
  before(builtDist);

  it('sends the traces that it says are to be seen', async () => {
    const receiver = await otlpReceiver();
    const output = await runExample('tracing', {
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
      OTEL_EXPORTER_PROMETHEUS_PORT: '0',
    }).finally(() => receiver.close());

    const ids = [...output.matchAll(/\/trace\/([0-9a-f]{32})$/gm)].map(([, id]) => id);
    expect(ids).to.have.members([...new Set(receiver.spans.map(({ traceId }) => traceId))]);
    const forest = Object.fromEntries(spanForest(receiver.spans).map((root) => [root.name, outline(root).slice(1)]));
    // The pause that others keep too may end a little after the wait for the retry.
    for (const failing of ['a 429', 'an outage', 'a broken stream']) {
      forest[failing] = forest[failing]?.filter((line) => line.trim() !== 'queue') ?? [];
    }
    expect(forest).to.deep.equal({
      'a 429': ['  chat large', '    attempt large rate_limited', '    attempt large'],
      'an outage': [
        '  chat large',
        '    attempt large overloaded',
        '    attempt large overloaded',
        '    attempt small',
      ],
      'a broken stream': ['  chat large', '    attempt large stream_truncated', '    attempt large'],
      'an impatient caller': ['  chat large', '    attempt large'],
      'two turns at once': ['  chat large', '    attempt large', '  chat large', '    queue', '    attempt large'],
    });
    expect(output).to.match(/^ {2}sluice_requests_total\{.*http_response_status_code="429".*\} 1$/m);
    expect(output).not.to.contain('Nothing listens');
  });

  it('says so where nothing listens, and ends within seconds all the same', async () => {
    const began = performance.now();
    const output = await runExample('tracing', {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await freePort()}`,
      OTEL_EXPORTER_PROMETHEUS_PORT: '0',
    });
    expect(output).to.match(/^Nothing listens at http:\/\/127\.0\.0\.1:\d+: the traces go nowhere/);
    expect(output).to.contain('two turns at once: both answered by large');
    expect(performance.now() - began).to.be.below(30_000);
  });
});

import { metrics, trace } from '@opentelemetry/api';
import { expect } from 'chai';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { SluiceError } from '../../lib/core/errors.ts';
import { TELEMETRY_DEFAULTS } from '../../lib/telemetry/StartTelemetryOptions.ts';
import type { StartTelemetryOptions } from '../../lib/telemetry/StartTelemetryOptions.ts';
import { startTelemetry } from '../../lib/telemetry/startTelemetry.ts';
import type { Telemetry } from '../../lib/telemetry/startTelemetry.ts';
import { freePort } from '../helpers/freePort.ts';
import { withOtelEnvironment } from '../helpers/otelEnvironment.ts';
import { otlpReceiver } from '../helpers/otlpReceiver.ts';
import type { OtlpReceiver } from '../helpers/otlpReceiver.ts';

describe('startTelemetry', function () {
  this.timeout(20_000);
  let receiver: OtlpReceiver;
  beforeEach(async () => void (receiver = await otlpReceiver()));
  afterEach(() => receiver.close());

  /** Starts, makes a span and counts once, looks, and shuts down. Metrics are off unless `variables` turn them on. */
  async function run(
    variables: Readonly<Record<string, string>>,
    options: Partial<StartTelemetryOptions> = {},
    look: (telemetry: Telemetry) => Promise<void> = async () => {},
  ): Promise<void> {
    const environment = {
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
      OTEL_METRICS_EXPORTER: 'none',
      ...variables,
    };
    await withOtelEnvironment(environment, async () => {
      const telemetry = await startTelemetry({ serviceName: 'backend', ...options });
      try {
        trace
          .getTracer('spec')
          .startSpan('work', { attributes: { n: 1 } })
          .end();
        metrics.getMeter('spec').createCounter('sluice.things').add(3, { 'a.key': 'x' });
        await look(telemetry);
      } finally {
        await telemetry.shutdown();
      }
    });
    expect(receiver.complaints).to.deep.equal([]);
  }

  const page = async (url: string | undefined): Promise<string> => (await fetch(String(url))).text();

  async function rejection(promise: Promise<unknown>): Promise<SluiceError> {
    return promise.then(
      () => expect.fail('did not reject'),
      (error: unknown) => error as SluiceError,
    );
  }

  describe('spans', () => {
    for (const [protocol, contentType] of [
      ['http/json', 'application/json'],
      ['http/protobuf', 'application/x-protobuf'],
    ] as const) {
      for (const compression of ['none', 'gzip']) {
        it(`go out by ${protocol}, packed: ${compression}`, async () => {
          await run({ OTEL_EXPORTER_OTLP_PROTOCOL: protocol, OTEL_EXPORTER_OTLP_COMPRESSION: compression });

          expect(receiver.spans.map(({ name, attributes, scope }) => ({ name, attributes, scope }))).to.deep.equal([
            { name: 'work', attributes: { n: 1 }, scope: 'spec' },
          ]);
          const [request] = receiver.requests;
          expect(request?.contentType).to.equal(contentType);
          expect(request?.encoding).to.equal(compression === 'gzip' ? 'gzip' : undefined);
        });
      }
    }

    it('go out as protobuf unless told otherwise', async () => {
      await run({});
      expect(receiver.requests.map(({ path, contentType }) => [path, contentType])).to.deep.equal([
        ['/v1/traces', 'application/x-protobuf'],
      ]);
    });

    it('go to the endpoint of traces, with the headers of the variable', async () => {
      await run({
        OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.endpoint}/v1/traces`,
        OTEL_EXPORTER_OTLP_HEADERS: 'x-team=red',
      });
      expect(receiver.requests.map(({ headers }) => headers['x-team'])).to.deep.equal(['red']);
    });

    it('stay here with exporter none, and with everything disabled', async () => {
      await run({ OTEL_TRACES_EXPORTER: 'none' });
      await run({ OTEL_SDK_DISABLED: 'true', OTEL_METRICS_EXPORTER: '' }, {}, async ({ metricsUrl }) => {
        expect(metricsUrl).to.equal(undefined);
      });
      expect(receiver.requests).to.deep.equal([]);
    });

    it('are sampled as the variable says', async () => {
      await run({ OTEL_TRACES_SAMPLER: 'always_off' });
      expect(receiver.spans).to.deep.equal([]);
    });
  });

  describe('the resource', () => {
    it('names the service, and neither its command line nor its user or machine', async () => {
      await run({}, { serviceVersion: '1.2.3', attributes: { 'deployment.environment.name': 'staging' } });

      const { 'service.instance.id': instance, ...resource } = receiver.spans[0]?.resource ?? {};
      expect(instance).to.be.a('string');
      expect(
        Object.fromEntries(Object.entries(resource).filter(([key]) => !key.startsWith('telemetry.'))),
      ).to.deep.equal({
        'service.name': 'backend',
        'service.version': '1.2.3',
        'deployment.environment.name': 'staging',
      });
    });

    it('is what the environment says where both say something', async () => {
      const OTEL_RESOURCE_ATTRIBUTES = 'deployment.environment.name=canary,team=red';
      await run(
        { OTEL_SERVICE_NAME: 'backend-canary', OTEL_RESOURCE_ATTRIBUTES },
        { attributes: { 'deployment.environment.name': 'staging' } },
      );
      expect(receiver.spans[0]?.resource).to.include({
        'service.name': 'backend-canary',
        'deployment.environment.name': 'canary',
        team: 'red',
      });
    });

    it('has what the detectors of the variable find', async () => {
      await run({ OTEL_NODE_RESOURCE_DETECTORS: 'host' });
      expect(receiver.spans[0]?.resource).to.include.keys('host.name').and.not.include.keys('service.instance.id');
    });
  });

  describe('metrics', () => {
    it('wait for Prometheus on loopback, at the port of the options', async () => {
      const prometheusPort = await freePort();
      await run({ OTEL_METRICS_EXPORTER: '' }, { prometheusPort }, async ({ metricsUrl }) => {
        expect(metricsUrl).to.equal(`http://127.0.0.1:${prometheusPort}/metrics`);
        expect(await page(metricsUrl)).to.match(/^sluice_things_total\{a_key="x",otel_scope_name="spec"\} 3$/m);
      });
      expect(receiver.requests.map(({ path }) => path)).to.deep.equal(['/v1/traces']);
    });

    it('are read at the host and port of the variables, before those of the options', async () => {
      const port = await freePort();
      await run(
        {
          OTEL_METRICS_EXPORTER: 'prometheus',
          OTEL_EXPORTER_PROMETHEUS_HOST: '::1',
          OTEL_EXPORTER_PROMETHEUS_PORT: String(port),
        },
        { prometheusHost: '127.0.0.1', prometheusPort: port + 1 },
        async ({ metricsUrl }) => {
          expect(metricsUrl).to.equal(`http://[::1]:${port}/metrics`);
          expect(await page(metricsUrl)).to.contain('sluice_things_total');
        },
      );
    });

    it('are read at the host of the options', async () => {
      const options = { prometheusHost: '::1', prometheusPort: 0 };
      await run({ OTEL_METRICS_EXPORTER: 'prometheus' }, options, async ({ metricsUrl = '' }) => {
        expect(new URL(metricsUrl).hostname).to.equal('[::1]');
        expect(await page(metricsUrl)).to.contain('sluice_things_total');
        expect(await fetch(metricsUrl.replace('[::1]', '127.0.0.1')).catch(() => 'refused')).to.equal('refused');
      });
    });

    it('are no longer there after the shutdown, nor at another path', async () => {
      let url = '';
      await run({ OTEL_METRICS_EXPORTER: 'prometheus' }, { prometheusPort: 0 }, async ({ metricsUrl = '' }) => {
        url = metricsUrl;
        expect((await fetch(new URL('/', url))).status).to.equal(404);
        expect((await fetch(`${url}?name=x`)).status).to.equal(200);
      });
      expect(await fetch(url).catch(() => 'refused')).to.equal('refused');
    });

    for (const protocol of ['http/json', 'http/protobuf']) {
      it(`go out by OTLP where the variable says so: ${protocol}`, async () => {
        await run(
          { OTEL_METRICS_EXPORTER: 'otlp', OTEL_EXPORTER_OTLP_PROTOCOL: protocol },
          {},
          async ({ metricsUrl }) => void expect(metricsUrl).to.equal(undefined),
        );
        expect(receiver.metrics.map(({ name, points }) => ({ name, points }))).to.deep.equal([
          { name: 'sluice.things', points: [{ 'a.key': 'x' }] },
        ]);
      });
    }

    it('do both, still on loopback, where the variable names both', async () => {
      const prometheusPort = await freePort();
      await run({ OTEL_METRICS_EXPORTER: 'prometheus,otlp' }, { prometheusPort }, async () => {
        expect(await page(`http://127.0.0.1:${prometheusPort}/metrics`)).to.contain('sluice_things_total');
      });
      expect(receiver.metrics.map(({ name }) => name)).to.deep.equal(['sluice.things']);
    });
  });

  it('rejects where the port for Prometheus is taken, and has then started nothing', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;

    const error = await rejection(run({ OTEL_METRICS_EXPORTER: '' }, { prometheusPort: port }));
    taken.close();
    await once(taken, 'close');

    expect(error.code).to.equal('EADDRINUSE');
    await run({});
    expect(receiver.spans).to.have.length(1);
  });

  it('refuses to be started twice, and starts again after a shutdown', async () => {
    await run({}, {}, async () => {
      const error = await rejection(startTelemetry({ serviceName: 'second' }));
      expect(error.code).to.equal('invalid_option');
      expect(error.message).to.contain('another SDK is registered already');
    });
    await run({});
    expect(receiver.spans).to.have.length(2);
  });

  it('refuses next to metrics that somebody else has registered', async () => {
    await run({ OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'otlp' }, {}, async () => {
      expect((await rejection(startTelemetry({ serviceName: 'second' }))).code).to.equal('invalid_option');
    });
  });

  it('waits for exporters no longer than it is told', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const endpoint = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;

    const began = performance.now();
    // The exporter's own patience would be ten seconds, and it keeps the process alive for them.
    await run({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_TIMEOUT: '4000' }, { flushTimeoutMs: 100 });
    expect(performance.now() - began).to.be.within(95, 3_500);
    silent.closeAllConnections();
    silent.close();
  });

  it('shuts down once, however often it is asked', async () => {
    await run({}, {}, async (telemetry) => {
      expect(telemetry.shutdown()).to.equal(telemetry.shutdown());
    });
    expect(receiver.spans).to.have.length(1);
  });

  it('registers instrumentations', async () => {
    const given: string[] = [];
    const set = (what: string) => () => void given.push(what);
    const instrumentation = {
      setTracerProvider: set('traces'),
      setMeterProvider: set('metrics'),
      enable: () => {},
      disable: () => {},
      getConfig: () => ({}),
    };
    await run({ OTEL_METRICS_EXPORTER: 'otlp' }, { instrumentations: [instrumentation] });
    expect(given).to.include.members(['traces', 'metrics']);
  });

  it('leaves nothing behind where an instrumentation throws', async () => {
    const port = await freePort();
    const broken = {
      getConfig: () => ({}),
      enable: () => {},
      setTracerProvider: () => {
        throw new Error('broken');
      },
    };
    const options = { prometheusPort: port, instrumentations: [broken] };
    expect((await rejection(run({ OTEL_METRICS_EXPORTER: '' }, options))).message).to.equal('broken');
    await run({ OTEL_METRICS_EXPORTER: '' }, { prometheusPort: port });
    expect(receiver.spans).to.have.length(1);
  });

  const wrong: readonly (readonly [string, object, Record<string, string>?])[] = [
    ['serviceName', { serviceName: '' }],
    ['prometheusHost', { prometheusHost: '' }],
    ['prometheusPort', { prometheusPort: 65_536 }],
    ['prometheusPort', { prometheusPort: 0.5 }],
    ['OTEL_EXPORTER_PROMETHEUS_PORT', {}, { OTEL_EXPORTER_PROMETHEUS_PORT: 'nine' }],
    ['flushTimeoutMs', { flushTimeoutMs: Number.NaN }],
    ['shutdownOn', { shutdownOn: ['SIGKILL'] }],
  ];
  for (const [name, options, variables = {}] of wrong) {
    it(`rejects a wrong ${name}: ${JSON.stringify({ ...options, ...variables })}`, async () => {
      const error = await rejection(run(variables, options));
      expect(error.code).to.equal('invalid_option');
      expect(error.message).to.match(new RegExp(`^${name} must be `));
    });
  }

  it('has the defaults that it documents', () => {
    expect(TELEMETRY_DEFAULTS).to.deep.equal({
      prometheusHost: '127.0.0.1',
      prometheusPort: 9464,
      flushTimeoutMs: 5000,
    });
  });
});

import { expect } from 'chai';
import { otlpReceiver } from '../helpers/otlpReceiver.ts';
import type { OtlpReceiver } from '../helpers/otlpReceiver.ts';
import { runModule } from '../helpers/runModule.ts';
import type { Ended } from '../helpers/runModule.ts';

describe('startTelemetry with shutdownOn', function () {
  this.timeout(40_000);
  let receiver: OtlpReceiver;
  beforeEach(async () => void (receiver = await otlpReceiver()));
  afterEach(() => receiver.close());

  /** A process that makes one span, runs `rest`, and gets `signal` once it has said `ready`. */
  const program = (shutdownOn: readonly string[], rest: string, signal?: NodeJS.Signals): Promise<Ended> =>
    runModule(
      `
        import { trace } from '@opentelemetry/api';
        import { startTelemetry } from './lib/telemetry/startTelemetry.ts';
        const telemetry = await startTelemetry({ serviceName: 'x', shutdownOn: ${JSON.stringify(shutdownOn)} });
        trace.getTracer('spec').startSpan('work').end();
        ${rest}
        console.log('ready');
      `,
      { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint, OTEL_METRICS_EXPORTER: 'none' },
      (line, kill) => {
        if (line === 'ready' && signal !== undefined) kill(signal);
      },
    );
  const stayAlive = 'setInterval(() => {}, 1_000);';
  const names = (): readonly string[] => receiver.spans.map(({ name }) => name);

  it('flushes on a signal, and ends the process as that signal does', async () => {
    const ended = await program(['SIGTERM', 'SIGINT'], stayAlive, 'SIGTERM');
    expect(names()).to.deep.equal(['work']);
    expect(ended).to.deep.include({ signal: 'SIGTERM', code: null, stderr: '' });
  });

  it('leaves the end of the process to whoever listens to the signal too', async () => {
    const theirs = `process.on('SIGINT', () => setTimeout(() => process.exit(7), 500)); ${stayAlive}`;
    expect(await program(['SIGINT'], theirs, 'SIGINT')).to.deep.include({ signal: null, code: 7 });
    expect(names()).to.deep.equal(['work']);
  });

  it('flushes when the process has nothing left to do', async () => {
    expect(await program(['beforeExit'], '')).to.deep.include({ signal: null, code: 0, stderr: '' });
    expect(names()).to.deep.equal(['work']);
  });

  it('does nothing of it by default', async () => {
    expect(await program([], stayAlive, 'SIGTERM')).to.deep.include({ signal: 'SIGTERM', code: null });
    expect(names()).to.deep.equal([]);
  });

  it('listens no more after a shutdown', async () => {
    const { stdout } = await program(
      ['SIGTERM', 'SIGINT', 'beforeExit'],
      `await telemetry.shutdown(); console.log(['SIGTERM', 'SIGINT', 'beforeExit'].map((e) => process.listenerCount(e)).join());`,
    );
    expect(stdout).to.contain('0,0,0');
  });
});

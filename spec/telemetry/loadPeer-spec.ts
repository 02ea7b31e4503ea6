import { expect } from 'chai';
import type { SluiceError } from '../../lib/core/errors.ts';
import { loadPeer } from '../../lib/telemetry/loadPeer.ts';
import { runModule } from '../helpers/runModule.ts';

describe('loadPeer', () => {
  const failing = (error: Error): Promise<SluiceError> =>
    loadPeer('a-package', () => Promise.reject(error)).then(
      () => expect.fail('did not reject'),
      (caught: unknown) => caught as SluiceError,
    );

  it('gives what was loaded', async () => {
    expect(await loadPeer('a-package', async () => 7)).to.equal(7);
  });

  for (const code of ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND']) {
    it(`says what to install: ${code}`, async () => {
      const error = await failing(Object.assign(new Error('Cannot find package'), { code }));
      expect(error.code).to.equal('invalid_option');
      expect(error.message).to.equal('startTelemetry needs a package that is not there: npm install a-package');
    });
  }

  it('passes on whatever else goes wrong', async () => {
    const error = new Error('broken');
    expect(await failing(error)).to.equal(error);
  });
});

describe('sluice/telemetry', function () {
  this.timeout(40_000);

  /** Notes each package that is imported, and hides from the library those that match. */
  const watched = (hidden: string): string => `
    import { registerHooks } from 'node:module';
    const loaded = [];
    registerHooks({
      resolve(specifier, context, next) {
        loaded.push(specifier);
        if (${hidden}.test(specifier) && context.parentURL.includes('/lib/')) throw Object.assign(new Error(specifier), { code: 'ERR_MODULE_NOT_FOUND' });
        return next(specifier, context);
      },
    });
  `;

  it('loads no SDK before startTelemetry is called', async () => {
    const { stdout, stderr } = await runModule(`
      ${watched('/^$/')}
      const { startTelemetry } = await import('./lib/telemetry/index.ts');
      const sdk = () => loaded.filter((name) => /^@opentelemetry\\/(?!api$)/.test(name)).length > 0;
      console.log(sdk());
      process.env.OTEL_METRICS_EXPORTER = 'none';
      await (await startTelemetry({ serviceName: 'x' })).shutdown();
      console.log(sdk());
    `);
    expect(stderr).to.equal('');
    expect(stdout).to.equal('false\ntrue\n');
  });

  for (const name of ['@opentelemetry/sdk-node', '@opentelemetry/exporter-prometheus']) {
    it(`rejects in one sentence where ${name} is not installed`, async () => {
      const { stdout } = await runModule(`
        ${watched(`/^${name.replace('/', '\\/')}$/`)}
        const { startTelemetry } = await import('./lib/telemetry/index.ts');
        await startTelemetry({ serviceName: 'x', prometheusPort: 0 }).catch((e) => console.log(e.code, e.message));
      `);
      expect(stdout).to.equal(`invalid_option startTelemetry needs a package that is not there: npm install ${name}\n`);
    });
  }
});

import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OpenAI } from 'openai';
import { lastValueFrom, take } from 'rxjs';
import { parse } from 'yaml';
import { root } from '../../.ci/entryPoints.ts';
import { createSluice } from '../../lib/client/createSluice.ts';
import type { Sluice } from '../../lib/client/Sluice.ts';
import { startEmulator } from '../../lib/emulator/startEmulator.ts';
import type { Emulator } from '../../lib/emulator/startEmulator.ts';
import { observeSluice } from '../../lib/telemetry/observeSluice.ts';
import { openTelemetry } from '../../lib/telemetry/openTelemetry.ts';
import { startTelemetry } from '../../lib/telemetry/startTelemetry.ts';
import type { Telemetry } from '../../lib/telemetry/startTelemetry.ts';
import { withOtelEnvironment } from '../helpers/otelEnvironment.ts';
import { promtool, startPrometheus, withPrometheus } from '../helpers/prometheus.ts';
import type { Prometheus } from '../helpers/prometheus.ts';
import { EXPORTED } from '../helpers/prometheusNames.ts';

const folder = join(root, 'examples/observability');
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');

const POLICY = {
  quota: { account: { requestsPerMinute: 6_000, burstRequests: 4, tokensPerMinute: 1_000_000 } },
  models: {
    large: {
      fallback: ['small'],
      retry: { attempts: 2, baseMs: 5 },
      breaker: { consecutiveFailures: 3, openMs: 60_000 },
      concurrency: { initial: 4, min: 1, max: 8 },
    },
    small: { price: { inputPerMTok: 100, outputPerMTok: 100 }, midStream: 'restart' as const },
  },
  spend: { perTenantPerDay: { acme: 100, beta: 0.001 } },
};

describe('Prometheus', function () {
  this.timeout(60_000);

  withPrometheus(() => {
    it('finds the rules right, and what their tests expect', async () => {
      expect(await promtool(['check', 'rules', 'sluice.rules.yml'], folder)).to.contain('SUCCESS');
      expect(await promtool(['test', 'rules', 'sluice.rules.test.yml'], folder)).to.contain('SUCCESS');
      expect(await promtool(['check', 'config', 'prometheus.yml'], folder)).to.contain('SUCCESS');
    });

    describe('while calls run', () => {
      let emulator: Emulator;
      let telemetry: Telemetry;
      let sluice: Sluice;
      let prometheus: Prometheus;

      /** Calls of two tenants in three conversations that meet 429s, an outage, a broken stream, a full cap and a caller who leaves. */
      async function load(): Promise<void> {
        const ask = (model: string, tenant: string, conversation?: string): ReturnType<Sluice['chat']> =>
          sluice.chat({ model, messages: [{ role: 'user', content: 'Hello' }] }, { tenant, conversation });
        await Promise.allSettled([
          ...Array.from({ length: 12 }, (_, i) => lastValueFrom(ask('large', i % 2 ? 'acme' : 'beta', `c-${i % 3}`))),
          ...Array.from({ length: 8 }, (_, i) => lastValueFrom(ask('small', i % 2 ? 'acme' : 'beta'))),
          lastValueFrom(ask('small', 'acme').pipe(take(2))),
        ]);
      }

      before(async () => {
        await withOtelEnvironment({ OTEL_TRACES_EXPORTER: 'none' }, async () => {
          telemetry = await startTelemetry({ serviceName: 'spec', prometheusPort: 0 });
        });
        emulator = await startEmulator({
          firstTokenMs: 5,
          tokenMs: 1,
          tokens: 20,
          script: [
            { kind: 'error', error: 'requests', retryAfterMs: 20, times: 2, model: 'large' },
            { kind: 'error', error: 'overloaded', times: 'always', model: 'large' },
            { kind: 'cut', after: 10, times: 3, model: 'small' },
          ],
        });
        const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
        sluice = createSluice(openai, POLICY, { telemetry: openTelemetry() });
        observeSluice(sluice);
        await load();
        const { host } = new URL(telemetry.metricsUrl ?? '');
        prometheus = await startPrometheus({
          'sluice.rules.yml': read('sluice.rules.yml'),
          'prometheus.yml': read('prometheus.yml')
            .replace('host.docker.internal:9464', host)
            .replace('scrape_interval: 5s', 'scrape_interval: 250ms\n  scrape_timeout: 250ms')
            .replace('evaluation_interval: 15s', 'evaluation_interval: 500ms'),
        });
        await prometheus.until('sluice_calls_total', (samples) => samples.length > 0);
        await load();
      });
      after(async () => {
        await prometheus.close();
        await sluice.close();
        await emulator.close();
        await telemetry.shutdown();
      });

      it('finds the page of metrics right', async () => {
        const page = await (await fetch(telemetry.metricsUrl ?? '')).text();
        expect(await promtool(['check', 'metrics'], folder, page)).to.equal('');
        expect(page).to.contain('# TYPE sluice_requests_total counter');
      });

      it('has each metric of the library, with the labels that are promised', async () => {
        for (const [name, labels] of EXPORTED) {
          // No store is lost here.
          if (name === 'sluice_store_losses_total') continue;
          const samples = await prometheus.query(name);
          expect(samples, name).to.have.length.above(0);
          const seen = new Set(samples.flatMap((sample) => Object.keys(sample.labels)));
          for (const label of ['__name__', 'otel_scope_name']) seen.delete(label);
          expect([...labels], name).to.include.members([...seen]);
        }
      });

      it('counts what the provider counted', async () => {
        const samples = await prometheus.until(
          'sum by (http_response_status_code) (sluice_requests_total)',
          (found) => found.reduce((sum, { value }) => sum + value, 0) === emulator.report().requests,
        );
        const counted: unknown = Object.fromEntries(
          samples.map(({ labels, value }) => [labels['http_response_status_code'], value]),
        );
        expect(counted).to.deep.equal(emulator.report().statuses);
      });

      it('records every rule', async () => {
        const { groups } = parse(read('sluice.rules.yml')) as { groups: { rules: { record?: string }[] }[] };
        for (const { record } of groups.flatMap(({ rules }) => rules)) {
          if (record !== undefined) await prometheus.until(record, (samples) => samples.length > 0);
        }
        const rate = 'job_model:sluice_requests:rate5m{gen_ai_request_model="small"}';
        const [sample] = await prometheus.until(rate, ([found]) => (found?.value ?? 0) > 0);
        expect(sample?.labels).to.include({ job: 'sluice', gen_ai_request_model: 'small' });
      });

      it('raises the alert of a cap that is nearly spent', async () => {
        const alerts = await prometheus.until(
          'ALERTS{alertname="SluiceSpendNearCap", alertstate="firing"}',
          (samples) => samples.length > 0,
        );
        expect(alerts.map(({ labels }) => labels['sluice_tenant'])).to.deep.equal(['beta']);
      });

      it('has something to show in every panel of the dashboard', async () => {
        const { panels } = JSON.parse(read('grafana/sluice.dashboard.json')) as {
          panels: { title: string; targets?: { expr: string }[] }[];
        };
        for (const { title, targets = [] } of panels) {
          for (const { expr } of targets) {
            const expression = expr.replaceAll(/\$(job|model)/g, '.*').replaceAll(/\$__(rate_interval|range)/g, '1m');
            const samples = await prometheus.until(expression, (found) => found.length > 0);
            expect(samples, title).to.have.length.above(0);
          }
        }
      });
    });
  });
});

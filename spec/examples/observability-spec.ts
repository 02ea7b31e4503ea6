import { expect } from 'chai';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { root } from '../../.ci/entryPoints.ts';
import { SLUICE_METRICS } from '../../lib/telemetry/metricNames.ts';
import { EXPORTED, mentionedIn } from '../helpers/prometheusNames.ts';

const folder = join(root, 'examples/observability');
const read = (name: string): string => readFileSync(join(folder, name), 'utf8');

interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}
interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: { readonly uid: string };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
  readonly targets?: readonly { readonly refId: string; readonly expr: string; readonly legendFormat: string }[];
}

const rules = (parse(read('sluice.rules.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);
const alerts = rules.filter(({ alert }) => alert !== undefined);
const dashboard = JSON.parse(read('grafana/sluice.dashboard.json')) as {
  uid: string;
  title: string;
  panels: Panel[];
  templating: { list: { name: string; type: string; definition?: string }[] };
};
const panels = dashboard.panels.filter(({ type }) => type !== 'row');

/** Fails unless every metric and every label of the expression is one that this library, or a rule, makes. */
function expectExisting(expression: string, where: string): void {
  const recorded = new Map(
    rules.flatMap(({ record, expr }) => (record === undefined ? [] : [[record, expr] as const])),
  );
  const labelsOf = (metric: string): ReadonlySet<string> => {
    if (metric === 'up' || metric === 'ALERTS') return new Set(['job', 'instance', 'alertname', 'alertstate']);
    const from = recorded.get(metric);
    if (from !== undefined) return new Set(mentionedIn(from).selected.flatMap((inner) => [...labelsOf(inner.metric)]));
    expect([...EXPORTED.keys()], where).to.include(metric);
    return EXPORTED.get(metric) ?? new Set();
  };
  const { selected, grouped } = mentionedIn(expression);
  expect(selected, where).to.have.length.above(0);
  for (const { metric, labels } of selected) expect([...labelsOf(metric)], where).to.include.members(labels);
  const all = selected.flatMap(({ metric }) => [...labelsOf(metric)]);
  expect(all, where).to.include.members(grouped);
}

describe('examples/observability', () => {
  describe('rules', () => {
    it('use metrics and labels that are exported', () => {
      for (const { record, alert, expr } of rules) expectExisting(expr, record ?? alert ?? '');
    });

    it('would not use another: the check itself', () => {
      expect(() => expectExisting('rate(sluice_request_total[5m])', '')).to.throw('sluice_request_total');
      expect(() => expectExisting('sum(sluice_inflight{tenant="a"})', '')).to.throw('tenant');
      expect(() => expectExisting('sum by (model) (sluice_inflight)', '')).to.throw('model');
      expect(() => expectExisting('sluice_inflight and on (job) sluice_nothing > 3', '')).to.throw('sluice_nothing');
    });

    it('alert of what an operator wants to hear of', () => {
      expect(alerts.map(({ alert }) => alert)).to.include.members([
        'SluiceRateLimited',
        'SluiceSlow',
        'SluiceRetryAmplification',
        'SluiceBreakerOpen',
        'SluiceQueueGrowing',
        'SluiceTenantStarving',
        'SluiceSpendNearCap',
      ]);
    });

    it('say in each alert how grave it is, what is wrong, and where it stands what to do', () => {
      const guide = readFileSync(join(root, 'docs/guide/observability.md'), 'utf8');
      const anchors = [...guide.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => title.toLowerCase());
      for (const { alert, labels, annotations } of alerts) {
        expect(['warning', 'critical'], alert).to.include(labels?.['severity']);
        expect(annotations?.['summary'], alert).to.match(/\{\{ \$labels\.\w+ \}\}/);
        const [page, anchor] = String(annotations?.['runbook']).split('#');
        expect(page, alert).to.equal('docs/guide/observability.md');
        expect(anchors, alert).to.include(anchor);
      }
    });

    it('have for each alert a test in which it fires and one in which it does not', () => {
      interface Case {
        readonly alertname: string;
        readonly exp_alerts: readonly unknown[];
      }
      const { tests } = parse(read('sluice.rules.test.yml')) as { tests: { alert_rule_test: Case[] }[] };
      for (const { alert } of alerts) {
        const counts = tests
          .map((test) => test.alert_rule_test.filter(({ alertname }) => alertname === alert))
          .filter((cases) => cases.length > 0)
          .map((cases) => Math.max(...cases.map((one) => one.exp_alerts.length)));
        expect(counts, alert).to.include(0);
        expect(counts, alert).to.include(1);
      }
    });
  });

  describe('the dashboard', () => {
    it('asks for metrics and labels that are exported', () => {
      for (const { title, targets = [] } of panels) {
        expect(targets, title).to.have.length.above(0);
        for (const { expr } of targets) expectExisting(expr, title);
      }
      for (const { definition = '' } of dashboard.templating.list) {
        const [, expression = ''] = /^label_values\((.+), \w+\)$/.exec(definition) ?? [];
        if (definition !== '') expectExisting(expression, definition);
      }
    });

    it('shows every metric of this library', () => {
      const shown = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)).join('\n');
      for (const { name } of Object.values(SLUICE_METRICS)) expect(shown).to.contain(name.replaceAll('.', '_'));
    });

    it('says of each panel what it means, in which unit, from the data source that was chosen', () => {
      expect(dashboard.templating.list.map(({ name }) => name)).to.deep.equal(['datasource', 'job', 'model']);
      for (const { title, description, fieldConfig, datasource, targets = [] } of panels) {
        expect(description, title).to.match(/^[A-Z0-9].+[.?]$/);
        expect(fieldConfig?.defaults.unit, title).to.be.a('string');
        expect(datasource?.uid, title).to.equal('${datasource}');
        expect(new Set(targets.map(({ refId }) => refId)).size, title).to.equal(targets.length);
        for (const { legendFormat } of targets) expect(legendFormat, title).not.to.equal('');
      }
    });

    it('fits into its 24 columns, and lays nothing over anything else', () => {
      const taken = new Map<string, string>();
      for (const {
        title,
        gridPos: { x, y, w, h },
      } of dashboard.panels) {
        expect(x + w, title).to.be.at.most(24);
        for (let column = x; column < x + w; column++) {
          for (let line = y; line < y + h; line++) {
            const cell = `${column},${line}`;
            expect(taken.get(cell), `${title} at ${cell}`).to.equal(undefined);
            taken.set(cell, title);
          }
        }
      }
      expect(new Set(dashboard.panels.map(({ id }) => id)).size).to.equal(dashboard.panels.length);
    });
  });

  describe('docker-compose.yml', () => {
    const { services } = parse(read('docker-compose.yml')) as {
      services: Record<string, { image: string; ports: string[]; volumes?: string[] }>;
    };

    it('runs pinned versions, open to this machine only', () => {
      expect(Object.keys(services)).to.deep.equal(['jaeger', 'prometheus', 'grafana']);
      for (const [name, { image, ports }] of Object.entries(services)) {
        expect(image, name).to.match(/:v?\d+\.\d+\.\d+$/);
        for (const port of ports) expect(port, name).to.match(/^127\.0\.0\.1:(\d+):\1$/);
      }
    });

    it('gives files that are there, where they are looked for', () => {
      const mounts = Object.values(services).flatMap(({ volumes = [] }) => volumes.map((volume) => volume.split(':')));
      for (const [file = ''] of mounts) expect(existsSync(join(folder, file)), file).to.equal(true);

      const { providers } = parse(read('grafana/dashboards.yml')) as { providers: { options: { path: string } }[] };
      const targets = mounts.map(([, target]) => target);
      expect(targets).to.include(`${providers[0]?.options.path}/sluice.dashboard.json`);
      const { rule_files } = parse(read('prometheus.yml')) as { rule_files: string[] };
      for (const file of rule_files) expect(targets).to.include(`/etc/prometheus/${file}`);
    });

    it('has data sources at the names of its services, at the pace of the scrapes', () => {
      const { datasources } = parse(read('grafana/datasources.yml')) as {
        datasources: { url: string; jsonData?: { timeInterval?: string } }[];
      };
      const { global } = parse(read('prometheus.yml')) as { global: { scrape_interval: string } };
      for (const { url } of datasources) expect(Object.keys(services)).to.include(new URL(url).hostname);
      expect(datasources[0]?.jsonData?.timeInterval).to.equal(global.scrape_interval);
    });
  });
});

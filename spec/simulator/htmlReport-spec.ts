import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { htmlReport, simulate } from '../../lib/simulator/index.ts';
import type { Scenario, ScenarioFile, SimulationResult } from '../../lib/simulator/index.ts';

const NASTY = `</script><script>alert(1)</script><img src=x onerror="alert('2')">&amp;`;
const quota = { requestsPerMinute: 600, burstRequests: 10 };
const scenario: Scenario = {
  name: `a spec ${NASTY}`,
  forMs: 5000,
  seed: 41,
  load: [{ arrivals: { kind: 'poisson', perMinute: 900 }, model: 'm', tenant: `acme ${NASTY}` }],
  upstreams: {
    [`main ${NASTY}`]: { ...quota, outages: [{ kind: 'error', error: 'overloaded', fromMs: 1000, toMs: 2000 }] },
  },
  strategies: [
    { kind: 'bare', name: `bare ${NASTY}` },
    { kind: 'sluice', policy: { quota: { account: quota } } },
  ],
};

describe('htmlReport', () => {
  let result: SimulationResult;
  let page: string;
  before(() => {
    result = simulate(scenario, { timeline: true });
    page = htmlReport(scenario, result);
  });

  it('lets no name of the scenario be more than a text', () => {
    const own = htmlReport({ ...scenario, name: 'x' }, { ...result, scenario: 'x' }, { files: [], command: 'x' });
    const count = (text: string, part: string): number => text.split(part).length - 1;
    // As many elements as without it, in a page that shows it in titles, tables, lists, data and texts.
    for (const start of ['<script', '</script', '<img', '<h1', '<section']) {
      expect(count(page, start), start).to.equal(count(own, start));
    }
    expect(page).to.include(
      '&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=&quot;alert(&#39;2',
    );
    expect(page).to.not.include('<img');
    const [, data = ''] = /<script type="application\/json" id="report-data">([^]*?)<\/script>/.exec(page) ?? [];
    expect(data).to.not.include('<');
    expect((JSON.parse(data) as { strategies: { name: string }[] }).strategies[1]?.name).to.equal(`bare ${NASTY}`);
  });

  it('is one file that may ask for nothing, and runs its own scripts only', () => {
    const [, policy = ''] = /content-security-policy" content="([^"]*)"/.exec(page) ?? [];
    expect(policy).to.match(
      /^default-src &#39;none&#39;; script-src( &#39;sha256-[^ ]+&#39;){2}; style-src &#39;sha256-[^ ]+&#39;; base-uri &#39;none&#39;; form-action &#39;none&#39;$/,
    );
    expect(page).to.not.match(/<\w[^<>]* (?:src|href)=/);
    expect(page).to.not.match(/@import|url\(/);
  });

  it('is the same for the same scenario, to the last byte', () => {
    expect(htmlReport(scenario, simulate(scenario, { timeline: true }))).to.equal(page);
  });

  it('has its figures as tables, for who cannot have the plots', () => {
    const plain = page.replace(/<script[^]*?<\/script>/g, '').replace(/<[^>]+>/g, '|');
    expect(plain).to.match(/answered[|\s]+100\.00 %\|/);
    expect(plain).to.match(/429s per request sent[|\s]+0\.00 %/);
    expect(plain).to.include('time to first content, p99').and.include('whole answer, p50').and.include('quota used');
    expect(plain).to.match(/What calls failed of\|[^]*rate_limited\|/);
    expect(plain).to.match(/By tenant\|[^]*acme [^]*: calls\|/);
    expect(plain).to.match(/0:01 to 0:02[|\s]+all models of main [^|]*: overloaded/);
  });

  describe('to repeat it', () => {
    const shown = (files: readonly ScenarioFile[]): string =>
      htmlReport(scenario, result, { files, command: 'npx sluice simulate here.yaml' });

    it('holds the scenario, its seed and the command', () => {
      expect(page).to.include('--seed 41').and.include('&quot;seed&quot;: 41');
      const text = shown([
        { name: 'here.yaml', text: '# of my own\nname: x' },
        { name: 'calls.csv', text: 'atMs\n5' },
      ]);
      expect(text).to.include('<code># of my own\nname: x</code>').and.include('npx sluice simulate here.yaml');
      expect(text).to.include('<h3>calls.csv</h3>').and.include('atMs\n5');
    });

    it('tells of a long file how to know it again', () => {
      const text = shown([{ name: 'calls.csv', text: 'x'.repeat(300_000) }]);
      expect(text).to.include('300,000 bytes, SHA-256').and.include('too long to be shown here');
      expect(text).to.not.include('xxxxxx');
    });

    it('hides keys and addresses, and shows the names of variables', () => {
      const yaml =
        'clients: { main: { apiKey: sk-0123456789, baseURL: "https://api.example/v1" } }\nother: sk-0123456789';
      const text = shown([
        { name: 'policy.yaml', text: yaml },
        { name: 'second.yaml', text: 'clients: { main: { apiKey: "${SOME_KEY}" } }' },
        { name: 'third.json', text: '{"gateway":{"keys":[{"key":"0123456789abcdef"}]}}' },
      ]);
      expect(text).to.not.include('sk-0123').and.not.include('0123456789abcdef').and.not.include('api.example');
      expect(text).to.include('[hidden]').and.include('${SOME_KEY}');
    });
  });

  it('needs timelines', () => {
    expect(() => htmlReport(scenario, simulate({ ...scenario, forMs: 100 }))).to.throw('timeline: true');
  });

  it('has scripts that can stand one after the other', () => {
    const files = ['dom.js', 'format.js', 'plot.js', 'report.js'];
    const texts = files.map((name) => readFileSync(`lib/simulator/report/page/${name}`, 'utf8'));
    const names = texts.flatMap((text) =>
      [...text.matchAll(/^(?:export )?(?:async )?(?:function|const|let|class) (\w+)/gm)].map(([, name]) => name),
    );
    expect(new Set(names).size).to.equal(names.length);
    texts.forEach((text, i) => {
      for (const [, from] of text.matchAll(/from '\.\/([^']+)'/g)) {
        expect(files.slice(0, i), `${files[i]} imports ${from}`).to.include(from);
      }
    });
  });
});

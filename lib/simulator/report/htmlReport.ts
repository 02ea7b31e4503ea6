import { SluiceError } from '../../core/errors.ts';
import type { Scenario } from '../scenario/Scenario.ts';
import type { SimulationResult } from '../simulate.ts';
import { html, jsonData } from './html.ts';
import type { Html } from './html.ts';
import { pageParts } from './pageParts.ts';
import { clock, count } from './page/format.js';
import { happenings, isOurs, reportData } from './reportData.ts';
import { scenarioFiles } from './scenarioFiles.ts';
import type { ReportOptions } from './ReportOptions.ts';
import { failureRows, phaseRows, resultRows, tenantRows } from './resultRows.ts';
import type { Rows } from './resultRows.ts';

/**
 * A page about what a simulation found: its figures, plots over virtual time and as distributions, and the scenario itself.
 * One file, which needs no other, no network and no server. It follows the system's light or dark; behind each plot is a
 * table.
 *
 * The scenario's text stands in it, with its names, but for keys and addresses that a policy in it may have.
 *
 * @param scenario - What was simulated.
 * @param result - What came of it, with `timeline: true`.
 * @throws SluiceError `invalid_option` where the result has no timelines.
 *
 * @example
 * ```ts
 * import { writeFileSync } from 'node:fs';
 * import { htmlReport, loadScenario, simulate } from 'sluice/simulator';
 *
 * const scenario = loadScenario('examples/scenarios/nightly-bursts.yaml');
 * writeFileSync('report.html', htmlReport(scenario, simulate(scenario, { timeline: true })));
 * ```
 */
export function htmlReport(scenario: Scenario, result: SimulationResult, options: ReportOptions = {}): string {
  if ([result.best, ...result.strategies].some(({ timeline }) => timeline === undefined)) {
    throw new SluiceError('invalid_option', 'a report needs what simulate gives with timeline: true');
  }
  const { styles, scripts, security } = pageParts();
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="content-security-policy" content="${security}" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="dark light" />
        <meta name="generator" content="sluice simulate" />
        <title>${result.scenario}, simulated</title>
        ${styles}
      </head>
      <body>
        <header>
          <h1>${result.scenario}</h1>
          <p>
            ${count(result.best.calls)} calls in ${clock(scenario.forMs)} of virtual time, once for each strategy, with
            seed ${result.seed}. The best possible schedule is that of someone who knows the provider’s counts and
            outages beforehand and serves in order of arrival.
          </p>
        </header>
        <main>
          ${tablesOf(scenario, result)}
          <div id="choices" hidden>
            <fieldset id="strategies"><legend>Strategies</legend></fieldset>
            <fieldset>
              <legend>Percentile over time</legend>
              ${['p50', 'p95', 'p99'].map(
                (name) =>
                  html`<label
                    ><input
                      type="radio"
                      name="percentile"
                      value="${name}"
                      ${name === 'p95' ? checked : ''}
                    />${name}</label
                  >`,
              )}
            </fieldset>
          </div>
          <noscript
            ><p>
              The plots are drawn by a script of this page. The tables and the scenario are here without it.
            </p></noscript
          >
          <section aria-labelledby="over-time-title">
            <h2 id="over-time-title">Over time</h2>
            <p>Virtual time since the beginning. ${spanOf(result)}</p>
            ${happeningsOf(scenario)}
            <div id="over-time" class="plots"></div>
          </section>
          <section aria-labelledby="distributions-title">
            <h2 id="distributions-title">How long it took</h2>
            <p>Of all calls, how many had got so far within a time. Calls that never did keep a line below 100 %.</p>
            <div id="distributions" class="plots"></div>
          </section>
          ${repeatOf(scenario, result, options)}
        </main>
        ${jsonData('report-data', reportData(scenario, result))} ${scripts}
      </body>
    </html> `.source;
}

const checked = html` checked`;

function tablesOf(scenario: Scenario, result: SimulationResult): readonly Html[] {
  const tables: readonly (readonly [title: string, rows: Rows])[] = [
    ['Figures', resultRows(result)],
    ['What calls failed of', failureRows(result)],
    ['By phase', phaseRows(result)],
    ['By tenant', tenantRows(result)],
  ];
  return tables.flatMap(([title, rows]) => (rows.length > 1 ? [section(title, tableOf(title, rows, scenario))] : []));
}

function section(title: string, content: Html): Html {
  const id = title.toLowerCase().replaceAll(' ', '-');
  return html`<section aria-labelledby="${id}">
    <h2 id="${id}">${title}</h2>
    ${content}
  </section>`;
}

function tableOf(title: string, rows: Rows, scenario: Scenario): Html {
  const [head = [], ...body] = rows;
  // The first column says what a row is, the second is the yardstick.
  const mark = (column: number): Html => (column > 1 && isOurs(scenario, column - 2) ? html` class="ours"` : html``);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${title}, by strategy">
    <table>
      <caption>
        ${title}
      </caption>
      <thead>
        <tr>
          ${head.map((text, column) =>
            column === 0 ? html`<td></td>` : html`<th scope="col" ${mark(column)}>${text}</th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${body.map(
          (row) =>
            html`<tr>
              ${row.map((text, column) =>
                column === 0 ? html`<th scope="row">${text}</th>` : html`<td${mark(column)}>${text}</td>`,
              )}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

function spanOf({ best, strategies }: SimulationResult): string {
  const widths = [best, ...strategies].map(({ timeline }) => timeline?.bucketMs ?? 0);
  return `Each point is for ${count(Math.min(...widths))} ms or more.`;
}

function happeningsOf(scenario: Scenario): Html {
  const all = happenings(scenario);
  if (all.length === 0) return html``;
  return html`<p>Shaded: what the scenario does to the providers.</p>
    <dl class="facts">
      ${all.map(
        ({ fromMs, toMs, what }) =>
          html`<dt>${toMs === fromMs ? clock(fromMs) : `${clock(fromMs)} to ${clock(toMs)}`}</dt>
            <dd>${what}</dd>`,
      )}
    </dl>`;
}

function repeatOf(scenario: Scenario, { seed }: SimulationResult, { files, command }: ReportOptions): Html {
  return html`<section aria-labelledby="repeat">
    <h2 id="repeat">To repeat it</h2>
    <dl class="facts">
      <dt>Command</dt>
      <dd><code>${command ?? `npx sluice simulate scenario.json --compare --seed ${seed}`}</code></dd>
      <dt>Seed</dt>
      <dd>${seed}</dd>
    </dl>
    ${scenarioFiles(scenario, files).map(
      ({ name, text, note }) =>
        html`<h3>${name}</h3>
          <p>${note}</p>
          ${
            text === undefined
              ? ''
              : html`<div class="scroll" tabindex="0" role="region" aria-label="Text of ${name}">
                  <pre><code>${text}</code></pre>
                </div>`
          }`,
    )}
  </section>`;
}

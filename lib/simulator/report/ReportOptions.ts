import type { ScenarioFile } from '../scenario/loadScenario.ts';

export interface ReportOptions {
  /** The scenario as it was written, then what it refers to. Default: the scenario as JSON. */
  readonly files?: readonly ScenarioFile[] | undefined;
  /** What runs it again. Default: `sluice simulate`, with the seed. */
  readonly command?: string | undefined;
}

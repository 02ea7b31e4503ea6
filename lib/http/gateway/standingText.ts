import type { SluiceSnapshot } from '../../client/Sluice.ts';
import type { BreakerState } from '../../core/events.ts';

/** As `sluice.breaker.state` counts them. */
const BREAKER_LEVEL: Readonly<Record<BreakerState, number>> = { closed: 0, half_open: 1, ramping: 1, open: 2 };

type Labels = Readonly<Record<string, string>>;
type Sample = readonly [labels: Labels, value: number];

/**
 * How a client stands, as text that Prometheus reads, for a gateway without telemetry: what a snapshot tells, under the
 * names that telemetry has for the same.
 */
export function standingText({ calls, admission, spend }: SluiceSnapshot): string {
  const models = Object.entries(admission.models);
  const deployments = models.flatMap(([, model]) => model.deployments);
  return [
    gauge('sluice_calls_running', 'Calls that run or wait.', [[{}, calls]]),
    gauge(
      'sluice_inflight',
      'Attempts that were sent and have not ended.',
      deployments.map(({ name, inFlight }) => [{ deployment: name }, inFlight]),
    ),
    gauge(
      'sluice_queue_size',
      'Attempts that wait.',
      models.map(([model, { waiting }]) => [{ gen_ai_request_model: model }, waiting]),
    ),
    gauge(
      'sluice_breaker_state',
      '0: closed, 1: half open or ramping up, 2: open.',
      deployments.map(({ name, breaker }) => [{ sluice_breaker: name }, BREAKER_LEVEL[breaker.state]]),
    ),
    gauge(
      'sluice_concurrency_limit',
      'Attempts that a limiter lets be in flight at once.',
      deployments.filter(({ limit }) => limit < Infinity).map(({ name, limit }) => [{ sluice_limiter: name }, limit]),
    ),
    gauge(
      'sluice_spend_cap_used',
      'Share of its daily cap that a tenant has spent today.',
      Object.entries(spend.capUsed).map(([tenant, share]) => [{ sluice_tenant: tenant }, share]),
    ),
  ].join('');
}

function gauge(name: string, help: string, samples: readonly Sample[]): string {
  const lines = samples.map(([labels, value]) => `${name}${labelText(labels)} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${lines.join('')}`;
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

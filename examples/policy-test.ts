// Tests of a policy in virtual time: a day of load, an outage, a conversation, a user that leaves; no network, no waiting.
// Run: npx node examples/policy-test.ts

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSluice, lastAnswer } from 'sluice';
import type { PolicyInput } from 'sluice';
import { simulate, virtualProvider } from 'sluice/simulator';
import { virtualRuntime } from 'sluice/testing';

const quota = { requestsPerMinute: 10, burstRequests: 4 };
const policy: PolicyInput = {
  deadlineMs: 60_000,
  quota: { account: quota },
  models: {
    'gpt-5.5': { fallback: ['gpt-5.5-mini'], retry: { attempts: 3 }, timeouts: { firstContentMs: 10_000 } },
    'gpt-5.5-mini': {},
  },
};
const hello = { model: 'gpt-5.5', messages: [{ role: 'user' as const, content: 'Hello' }] };

await test('a day of the usual load meets no 429', () => {
  const { strategies } = simulate({
    name: 'a day',
    forMs: 86_400_000,
    load: [{ arrivals: { kind: 'daily', perMinute: 3, peak: 1.6 }, model: 'gpt-5.5', outputLimit: 300 }],
    upstreams: {
      main: { ...quota, firstTokenMs: { median: 400, sigma: 0.4 }, tokens: { median: 150, sigma: 0.5, max: 300 } },
    },
    policy,
    strategies: [{ kind: 'sluice' }],
  });
  const [day] = strategies;
  assert.ok(day);
  assert.equal(day.answered, day.calls);
  assert.equal(day.rateLimited, 0);
  assert.ok(day.firstContentMs.p99 < 20_000, `p99 is ${Math.round(day.firstContentMs.p99)} ms`);
});

await test('while the model is down, the smaller one answers within three seconds', async () => {
  const runtime = virtualRuntime({ seed: 3 });
  const down = { kind: 'error', error: 'overloaded', model: 'gpt-5.5', times: 'always' } as const;
  const provider = virtualProvider({ script: [down], firstTokenMs: 400 }, runtime);
  const sluice = createSluice(provider.source, policy, { runtime });
  const answering = lastAnswer(sluice.chat(hello));
  await runtime.advanceAsync(3_000);
  assert.equal((await answering).model, 'gpt-5.5-mini');
  assert.deepEqual(provider.report().models, { 'gpt-5.5': 3, 'gpt-5.5-mini': 1 });
});

await test('turns of a conversation are sent one after the other, whatever each of them takes', () => {
  const runtime = virtualRuntime();
  const provider = virtualProvider({ firstTokenMs: { median: 500, sigma: 1 } }, runtime);
  const sluice = createSluice(provider.source, policy, { runtime });
  const ended: number[] = [];
  for (let turn = 0; turn < 4; turn++) {
    sluice.chat(hello, { conversation: 'c-17' }).subscribe({ complete: () => ended.push(turn) });
  }
  runtime.run();
  assert.deepEqual(ended, [0, 1, 2, 3]);
  assert.equal(provider.report().maxRunning, 1);
});

await test('a call that its user leaves gives everything back', () => {
  const runtime = virtualRuntime();
  const provider = virtualProvider({ firstTokenMs: 5_000 }, runtime);
  const sluice = createSluice(provider.source, policy, { runtime });
  const call = sluice.chat(hello).subscribe();
  runtime.advance(1_000);
  assert.equal(provider.report().running, 1);
  call.unsubscribe();
  runtime.run();
  assert.equal(provider.report().running, 0);
  assert.equal(sluice.snapshot().admission.inFlight, 0);
  assert.equal(runtime.pending, 0);
});

import { expect } from 'chai';
import fc from 'fast-check';
import { systemRuntime } from '../../../lib/core/runtime.ts';
import type { SharedSpend } from '../../../lib/limits/LimitStore.ts';
import { Script } from '../../../lib/stores/redis/Script.ts';
import { scriptCallsOf } from '../../../lib/stores/redis/RedisClient.ts';
import { SpendSheet } from '../../../lib/stores/redis/SpendSheet.ts';
import { describeWithRedis } from '../../helpers/redisServer.ts';
import { useRedis } from '../../helpers/useRedis.ts';

const DAY = 20_000;

describeWithRedis('redisStore, as daily spend', () => {
  const redis = useRedis();
  let made = 0;

  beforeEach(() => {
    made++;
  });

  const spender = (): SharedSpend => {
    return redis.store({ commandTimeoutMs: 2000, probeMs: 20 }).spend(`spend-${made}`);
  };
  const heard = (spend: SharedSpend, tenant: string, day = DAY): Promise<void> =>
    new Promise((resolve) => void spend.ask(day, tenant, resolve));
  const soon = (ms = 150): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));
  /** What `others` is in the end. */
  const until = async (others: () => number | undefined, wanted: number): Promise<void> => {
    for (let i = 0; i < 100 && others() !== wanted; i++) await soon(50);
    expect(others()).to.equal(wanted);
  };

  it('tells each process what the others have spent, exactly, and each day by itself', async () => {
    const [first, second] = [spender(), spender()];
    expect(first.others(DAY, 'acme')).to.equal(undefined);
    await heard(first, 'acme');
    expect(first.others(DAY, 'acme')).to.equal(0);
    expect([first.fresh(DAY, 'acme'), first.fresh(DAY, 'other')]).to.deep.equal([true, false]);
    for (let i = 0; i < 10; i++) second.add(DAY, 'acme', 0.1);
    second.add(DAY, 'other', 5);
    second.add(DAY + 1, 'acme', 7);
    await until(() => first.others(DAY, 'acme'), 1);
    first.add(DAY, 'acme', 0.25);
    await until(() => second.others(DAY, 'acme'), 0.25);
    expect(first.others(DAY, 'acme')).to.equal(1);
    await heard(first, 'acme', DAY + 1);
    expect(first.others(DAY + 1, 'acme')).to.equal(7);
  });

  it('fills a store again that has lost everything', async () => {
    const [first, second] = [spender(), spender()];
    first.add(DAY, 'acme', 2);
    second.add(DAY, 'acme', 3);
    await until(() => {
      void heard(second, 'acme');
      return second.others(DAY, 'acme');
    }, 2);
    await redis.client.sendCommand(['FLUSHALL']);
    await redis.client.sendCommand(['SCRIPT', 'FLUSH']);
    first.add(DAY, 'acme', 1);
    second.add(DAY, 'acme', 1);
    await until(() => second.others(DAY, 'acme'), 3);
    await until(() => first.others(DAY, 'acme'), 4);
  });

  it('keeps what was last heard while the store is lost, answers at once, and tells the rest afterwards', async () => {
    const [first, second] = [spender(), spender()];
    second.add(DAY, 'acme', 2);
    await until(() => {
      void heard(first, 'acme');
      return first.others(DAY, 'acme');
    }, 2);
    await redis.server.stop();
    first.add(DAY, 'acme', 1);
    await heard(first, 'new');
    expect(first.others(DAY, 'new')).to.equal(undefined);
    expect(first.others(DAY, 'acme')).to.equal(2);
    await redis.server.start();
    for (let i = 0; i < 100 && !redis.client.isReady; i++) await soon(50);
    first.add(DAY, 'acme', 1);
    second.add(DAY, 'acme', 0.5);
    await until(() => second.others(DAY, 'acme'), 2);
    await until(() => first.others(DAY, 'acme'), 2.5);
  }).timeout(20_000);

  it('is not lost where this process itself was held up while the answer came', async () => {
    const answer = (): Promise<unknown> => new Promise((resolve) => void setTimeout(() => resolve(['0']), 60));
    const changes: string[] = [];
    const onChange = ({ type }: { readonly type: string }): void => void changes.push(type);
    const store = redis.store({ commandTimeoutMs: 40, onChange }, { evalSha: answer, eval: answer });
    const spend = store.spend('held-up');
    const known = heard(spend, 'acme');
    await soon(1);
    const untilMs = performance.now() + 150;
    while (performance.now() < untilMs);
    await known;
    expect(spend.others(DAY, 'acme')).to.equal(0);
    expect(changes).to.deep.equal([]);
  });

  it('is lost in the end where this process is held up all the time and no answer comes', async () => {
    const never = (): Promise<unknown> => new Promise(() => {});
    const changes: string[] = [];
    const onChange = ({ type }: { readonly type: string }): void => void changes.push(type);
    const late = (work: () => void, delayMs = 0): { unsubscribe(): void } =>
      systemRuntime.scheduler.schedule(work, delayMs + 40);
    const runtime = { ...systemRuntime, scheduler: { schedule: late } };
    const store = redis.store({ commandTimeoutMs: 5, onChange }, { evalSha: never, eval: never }, runtime);
    void heard(store.spend('held-up-for-good'), 'acme');
    await until(() => changes.length, 1);
    expect(changes).to.deep.equal(['store.lost']);
  });

  it('forgets a day after two', async () => {
    const spend = spender();
    spend.add(DAY, 'acme', 1);
    const leftMs = async (): Promise<number> =>
      Number(await redis.client.sendCommand(['PTTL', `sluice:{spend-${made}}:spend:${DAY}`]));
    for (let i = 0; i < 100 && (await leftMs()) < 0; i++) await soon(50);
    expect(await leftMs()).to.be.within(1.7e8, 1.73e8);
  });

  it('decides as its machine does', async () => {
    const script = Script.read('spend.lua');
    const calls = scriptCallsOf(redis.client);
    const tenant = fc.constantFrom('acme', 'other', 'ünïcode', '');
    const told = fc.record({
      member: fc.constantFrom('a', 'b', 'c'),
      spent: fc.uniqueArray(fc.tuple(tenant, fc.nat(1_000_000_000)), { selector: ([name]) => name, maxLength: 3 }),
    });
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(told, { maxLength: 12 }), async (all) => {
        const sheet = new SpendSheet();
        const key = `{parity}:${runs++}`;
        for (const { member, spent } of all) {
          const args = ['60000', member, ...spent.flatMap(([name, amount]) => [name, String(amount)])];
          const reply = (await script.run(calls, [key], args)) as unknown[];
          expect(reply.map(Number)).to.deep.equal(sheet.tell(member, spent));
        }
      }),
      { numRuns: 60 },
    );
  });
});

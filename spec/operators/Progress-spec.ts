import { expect } from 'chai';
import { Progress } from '../../lib/operators/Progress.ts';

describe('Progress', () => {
  let progress: Progress;
  beforeEach(() => {
    progress = new Progress();
  });

  it('knows nothing before it is told anything', () => {
    expect(progress.stage).to.equal(undefined);
  });

  it('goes from the headers to the first content and on, and back to the wait when an attempt is over', () => {
    const stages = [
      () => progress.dispatched(),
      () => progress.responded(),
      () => progress.value(),
      () => progress.closed(),
    ].map((tell) => {
      tell();
      return progress.stage;
    });
    expect(stages).to.deep.equal(['headers', 'first_content', 'streaming', 'backoff']);
  });

  it('is in the queue while a gate is closed, and where it was once all have opened', () => {
    progress.dispatched();
    progress.gateClosed();
    progress.gateClosed();
    expect(progress.stage).to.equal('queue');
    progress.gateOpened();
    expect(progress.stage).to.equal('queue');
    progress.gateOpened();
    expect(progress.stage).to.equal('headers');
  });

  it('has left every queue when an attempt is sent, also one whose gate tells so late or never', () => {
    progress.gateClosed();
    progress.dispatched();
    expect(progress.stage).to.equal('headers');
    progress.gateOpened();
    progress.gateClosed();
    expect(progress.stage).to.equal('queue');
  });

  it('waits for no other attempt while one of two is open', () => {
    progress.dispatched();
    progress.dispatched();
    progress.responded();
    progress.closed();
    expect(progress.stage).to.equal('first_content');
    progress.closed();
    expect(progress.stage).to.equal('backoff');
  });
});

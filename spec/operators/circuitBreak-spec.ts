import { guardingOperatorContract } from '../contract/guardingOperator.ts';
import { circuitBreak } from '../../lib/operators/circuitBreak.ts';
import { createBreaker } from '../../lib/operators/createBreaker.ts';

describe('circuitBreak', () => {
  guardingOperatorContract((runtime) => {
    const breaker = createBreaker({}, runtime);
    return { guard: (onEvent) => circuitBreak(breaker, { onEvent, runtime }) };
  });
});

import type { EmulatorOptions } from '../../../lib/emulator/index.ts';

/** A model for each way in which a call of the mixed load goes. */
export const mixedProvider: EmulatorOptions = {
  firstTokenMs: 3,
  tokenMs: 1,
  tokens: 6,
  chunkTokens: 1,
  models: { fine: {}, failing: {}, cut: {}, silent: {}, slow: { tokens: 100_000, tokenMs: 2 } },
  script: [
    { kind: 'error', error: 'server_error', model: 'failing', times: 'always' },
    { kind: 'cut', after: 2, model: 'cut', times: 'always' },
    { kind: 'stall', after: 'connect', model: 'silent', times: 'always' },
  ],
};

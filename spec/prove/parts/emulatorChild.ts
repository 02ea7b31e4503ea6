import { startEmulator } from '../../../lib/emulator/index.ts';
import type { EmulatorOptions } from '../../../lib/emulator/index.ts';

// Started by emulatorProcess.ts. Ends with whoever started it.

const emulator = await startEmulator(JSON.parse(process.argv[2] ?? '{}') as EmulatorOptions);
process.on('disconnect', () => process.exit());
process.send?.(emulator.url);

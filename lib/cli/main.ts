#!/usr/bin/env node
// First, so that a Node that is too old says so before it meets anything it cannot read.
import './nodeFloor.cjs';

const { runCli } = await import('./runCli.ts');
const { processTerminal } = await import('./processTerminal.ts');

// Whoever reads has had enough, as `head` has.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});
process.exitCode = await runCli(process.argv.slice(2), processTerminal);

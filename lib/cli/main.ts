#!/usr/bin/env node
// First, so that a Node that is too old says so before it meets anything it cannot read.
import './nodeFloor.cjs';

const { runCli } = await import('./runCli.ts');
const { processTerminal } = await import('./processTerminal.ts');

process.exitCode = await runCli(process.argv.slice(2), processTerminal);

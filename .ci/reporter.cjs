'use strict';

const { writeFileSync } = require('node:fs');
const { reporters } = require('mocha');

/** The dot reporter, which also leaves its counts in the file that COUNTS_FILE names. */
module.exports = class CountingReporter extends reporters.Dot {
  constructor(runner, options) {
    super(runner, options);
    runner.once('end', () => {
      const { passes, failures, pending } = this.stats;
      writeFileSync(process.env.COUNTS_FILE, JSON.stringify({ passed: passes, failed: failures, skipped: pending }));
    });
  }
};

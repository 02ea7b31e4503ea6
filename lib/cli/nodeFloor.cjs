'use strict';

// Plain, old JavaScript: a Node of any age must get as far as the sentence below.

var floor = require('../../package.json').engines.node.replace('>=', '');

function older(version, than) {
  var have = version.split('.').map(Number);
  var need = than.split('.').map(Number);
  for (var i = 0; i < need.length; i++) {
    if (have[i] !== need[i]) return have[i] < need[i];
  }
  return false;
}

if (older(process.versions.node, floor)) {
  console.error(
    'Sluice needs Node ' +
      floor +
      ' or newer and this is Node ' +
      process.versions.node +
      ': install a newer one or, in a checkout, run `npm ci` with its scripts and then go through npm or npx, which use the Node it brings.',
  );
  process.exit(1);
}

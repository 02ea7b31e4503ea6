import { expect } from 'chai';
import { existsSync } from 'node:fs';
import { allCases } from '../helpers/cases.ts';
import { LATER, LATER_FORMS } from './later.ts';
import { UNFIT } from './unfit.ts';

describe('public reports', () => {
  const cases = allCases();
  const forms = new Set(cases.map(({ form }) => form));
  const isRun = (form: string): boolean => existsSync(new URL(`./${form}-spec.ts`, import.meta.url));

  for (const form of forms) {
    const reason = LATER_FORMS[form];
    const ids = cases.filter((each) => each.form === form).map(({ id }) => id);
    if (reason !== undefined && !isRun(form)) it.skip(`form ${form}: ${reason}: ${ids.join(', ')}`);
  }

  it('are all run, or listed with a reason', () => {
    const lost = cases.filter(({ form }) => !isRun(form) && LATER_FORMS[form] === undefined);
    expect(lost.map(({ id }) => id)).to.deep.equal([]);
  });

  it('have a name each', () => {
    const ids = cases.map(({ id }) => id);
    expect(ids).to.deep.equal([...new Set(ids)]);
  });

  it('are listed under names that they have, once, and only while they are not run', () => {
    const listed = [...Object.keys(LATER), ...Object.keys(UNFIT)];
    expect(listed).to.deep.equal([...new Set(listed)]);
    const ids = new Set(cases.map(({ id }) => id));
    expect(listed.filter((id) => !ids.has(id))).to.deep.equal([]);
    expect(Object.keys(LATER_FORMS).filter((form) => isRun(form) || !forms.has(form))).to.deep.equal([]);
  });
});

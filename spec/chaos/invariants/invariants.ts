import { aPromptIsNeverTold } from './aPromptIsNeverTold.ts';
import { attemptsStayWithinTheirNumber } from './attemptsStayWithinTheirNumber.ts';
import { everyCallEndsOnce } from './everyCallEndsOnce.ts';
import { everyGrantIsSettled } from './everyGrantIsSettled.ts';
import { everySpanEnds } from './everySpanEnds.ts';
import { inFlightStaysWithinLimits } from './inFlightStaysWithinLimits.ts';
import type { Invariant } from './Invariant.ts';
import { neverAboveQuota } from './neverAboveQuota.ts';
import { nothingHappensAfterTheCallerLeft } from './nothingHappensAfterTheCallerLeft.ts';
import { nothingIsLeft } from './nothingIsLeft.ts';
import { nothingStartsAfterTheDeadline } from './nothingStartsAfterTheDeadline.ts';
import { openBreakersSendNothing } from './openBreakersSendNothing.ts';
import { retriesStayWithinTheBudget } from './retriesStayWithinTheBudget.ts';
import { tenantsStayWithinTheirRates } from './tenantsStayWithinTheirRates.ts';
import { textArrivesOnceAndWhole } from './textArrivesOnceAndWhole.ts';
import { turnsComeInOrder } from './turnsComeInOrder.ts';

/** All that must hold, whatever happens. */
export const invariants: readonly Invariant[] = [
  neverAboveQuota,
  tenantsStayWithinTheirRates,
  inFlightStaysWithinLimits,
  everyGrantIsSettled,
  turnsComeInOrder,
  textArrivesOnceAndWhole,
  attemptsStayWithinTheirNumber,
  retriesStayWithinTheBudget,
  nothingStartsAfterTheDeadline,
  nothingHappensAfterTheCallerLeft,
  openBreakersSendNothing,
  everyCallEndsOnce,
  everySpanEnds,
  aPromptIsNeverTold,
  nothingIsLeft,
];

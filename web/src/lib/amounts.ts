export { SIZE_STEP, UNIT, ceilDivide, floorTo, numberOf, parseUnits, tickUnits, unitsOf, unitsText } from "foretell-client";
